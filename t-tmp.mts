import { createEncoder, rawJson, encodeSync } from './src/index.ts'
const r = rawJson('[1, 2]')
let n=0
console.log(encodeSync({toJSON:()=>r}).toString(), encodeSync([{toJSON:()=>{n++;return r}},{toJSON:()=>r.byteLength}]).toString(),n, r)
const e=createEncoder(); console.log((await e.encode(Array.from({length:20},()=>({a:{toJSON:()=>{n++;return {k:r}}}, b:{toJSON:()=>r}})))).toString().slice(0,60),n)
