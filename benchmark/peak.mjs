/**
 * What concatenating routed experts needs beyond its inputs and its result, in a process of its own: prints bytes. Linux
 * counts the peak of resident memory, and counts anew when told to.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { concatExperts } from '../src/index.ts'

const [turns, rows, layers, topk] = process.argv.slice(2).map(Number)
const tokens = turns * rows + 1

const make = () =>
  Array.from({ length: turns }, (_, index) => {
    const raw = new Uint8Array(rows * layers * topk).map((zero, at) => (at + index) & 127)
    const text = Buffer.from(raw.buffer).toString('base64')
    const data = Uint8Array.from(Buffer.from(text, 'latin1'))
    return { experts: { data, encoding: 'base64', shape: [rows, layers, topk], start: index * rows } }
  })

const resident = (name) =>
  Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync('/proc/self/status', 'utf8'))[1]) * 1024

// What is loaded, compiled and started by a first call is no cost of the second.
await concatExperts(make(), { tokens, transfer: true })
const inputs = make()
globalThis.gc()
await new Promise((resolve) => setTimeout(resolve, 50))
writeFileSync('/proc/self/clear_refs', '5')
const before = resident('VmRSS')
const { data } = await concatExperts(inputs, { tokens, transfer: true })
console.log(resident('VmHWM') - before - data.length)
