import { CALL_SHAPES } from '/work/main/benchmark/json/values.ts'
import { encode, release } from '/work/main/src/index.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { Session } from 'node:inspector'
const name = process.argv[2] ?? '1,500 spans'
const shape = CALL_SHAPES.find((s) => s.name === name)!
const value = shape.make()
for (let i = 0; i < 5; i++) await sleep(2)
if (process.argv[3]==='plain'){ for(let i=0;i<4;i++){const s=performance.now();const t=JSON.stringify(value);const m=performance.now();const b=Buffer.from(t);console.log('plain',(m-s).toFixed(2),(performance.now()-m).toFixed(2),b.length);await sleep(1)} process.exit()}
const s = new Session(); s.connect()
const post=(m:string,p?:object)=>new Promise<any>((r)=>s.post(m,p as never,(_e,x)=>r(x)))
if(process.argv[3]==='prof'){await post('Profiler.enable');await post('Profiler.setSamplingInterval',{interval:50});await post('Profiler.start')}
const n=Number(process.argv[4]??3)
for(let i=0;i<n;i++){const before=performance.eventLoopUtilization();const st=performance.now();const p=encode(value, shape.typedArrays?{typedArrays:shape.typedArrays}:undefined);const sync=performance.now()-st;const r=await p;const wall=performance.now()-st;release(r);await sleep(1);console.log('call',i,'sync',sync.toFixed(2),'wall',wall.toFixed(2),'loop',performance.eventLoopUtilization(before).active.toFixed(2))}
if(process.argv[3]==='prof'){const {profile}=await post('Profiler.stop');const self=new Map<string,number>();const dt=profile.timeDeltas;const byId=new Map(profile.nodes.map((x:any)=>[x.id,x]));profile.samples.forEach((id:number,i:number)=>{const c=(byId.get(id) as any).callFrame;const k=`${c.functionName||'(anon)'} ${c.url.split('/').slice(-2).join('/')}:${c.lineNumber}`;self.set(k,(self.get(k)??0)+dt[i]/1000)});for(const [k,v] of [...self].sort((a,b)=>b[1]-a[1]).slice(0,25))console.log(v.toFixed(2),k)}
