/**
 * base64 against Node's own decoders and Python's fastest: busy time of the loop, throughput, CPU.
 * Every output is checked before it is timed. `npm run bench -- base64`. OFFLOOP_BENCH_QUICK=1: few rounds, printed only.
 */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { python } from '../scripts/python.mjs'
import { decodeBase64, encodeBase64, stats, type Base64Options } from '../src/index.ts'
import {
  besideHeap,
  compare,
  longestBlocks,
  median,
  report,
  table,
  type Contender,
  type Effort,
  type HeapCase,
  type Measured,
} from './measure.ts'

const SIZES = [1024, 16 * 1024, 256 * 1024, 1024 * 1024, 4 * 1024 * 1024, 31_000_000]
const LARGEST = 31_000_000
/** Strings of a megabyte at most are decoded at once, longer ones in parts. */
const BLOCK_SIZES = [1024 * 1024, 1_100_000, 4 * 1024 * 1024, LARGEST]
const isQuick = process.env['OFFLOOP_BENCH_QUICK'] === '1'
const QUICK: Effort = { rounds: 1, runs: 3, calls: 1 }
const BLOCK_CALLS = isQuick ? 5 : 31
const QUEUED = isQuick ? 20 : 200
/** Python reuses the memory of a result that was dropped; one that is kept costs page faults, as it would anywhere. */
const PYTHON = `
import sys, time, pybase64
text = open(sys.argv[1], 'rb').read()
for kept in (False, True):
    times, results = [], []
    for _ in range(25):
        start = time.process_time()
        result = pybase64.b64decode(text, validate=True)
        times.append((time.process_time() - start) * 1e3)
        if kept: results.append(result)
    print(f'{pybase64.get_version()}, results {"kept" if kept else "dropped"}', sorted(times)[12], sep='|')
`

interface Kind {
  readonly name: string
  readonly of: (bytes: Buffer) => string
  readonly options: Base64Options
}

const KINDS: readonly Kind[] = [
  { name: 'clean', of: (bytes) => bytes.toString('base64'), options: {} },
  { name: 'lines of 76', of: (bytes) => inLines(bytes.toString('base64')), options: {} },
  { name: 'url-safe', of: (bytes) => bytes.toString('base64url'), options: { alphabet: 'base64url' } },
  { name: 'one bad character', of: (bytes) => withBad(bytes.toString('base64')), options: { mode: 'node' } },
]

const fromBase64: unknown = Reflect.get(Uint8Array, 'fromBase64')

const decoded: string[][] = [
  [
    'text',
    'size',
    'as',
    'Buffer.from µs',
    'fromBase64 µs',
    'offloop µs',
    'busy: offloop ÷ Buffer.from',
    'offloop GB/s',
  ],
]
for (const kind of KINDS) {
  for (const size of SIZES) {
    const text = flat(kind.of(noise((size / 4) * 3)))
    decoded.push(await ofString(kind, text), await ofBytes(kind, text))
  }
}
const transferred = await largestTransferred()
const blocks = await blocksOfStrings()
const encoded = await encoding()
const sections = [
  '## Decoding\n\nBusy time of the loop for one call, median; GB/s of text by the clock. `Buffer.from` of bytes goes through `toString("latin1")`, as there is no other way. Calls of both sides are awaited.',
  table(decoded),
  '## 31 MB of clean text as bytes\n\nAgainst `pybase64.b64decode(bytes, validate=True)`.',
  table(transferred),
  `## The longest single block of the loop\n\nOf flat strings, clean base64, kept by V8 as one byte a character or as two (which it does for parts of strings with other characters). ${BLOCK_CALLS} calls; latency is the median.`,
  table(blocks),
  '## Encoding 23 MB',
  table(encoded),
  '## `fs.promises.stat` while decodes are queued',
  await latencyOfStat(),
]
report('base64', [...sections, ...(await besideHeap(heapCases()))])

/** The largest text in each form. */
function heapCases(): HeapCase[] {
  const size = `${LARGEST / 1e6} MB`
  return [
    {
      name: `decoding ${size} of text as a string`,
      make: () => {
        const [plain, ours] = stringWays(flat(noise((LARGEST / 4) * 3).toString('base64')))
        return { plain, ours }
      },
    },
    {
      name: `decoding ${size} of text as bytes`,
      make: () => {
        const [plain, ours] = byteWays(Buffer.from(noise((LARGEST / 4) * 3).toString('base64'), 'latin1'))
        return { plain, ours }
      },
    },
    {
      name: `encoding to ${size}`,
      make: () => {
        const [plain, ours] = encodeWays(noise((LARGEST / 4) * 3))
        return { plain, ours }
      },
    },
  ]
}

type Ways = readonly [plain: Contender, ours: Contender]

function stringWays(text: string, options: Base64Options = {}): Ways {
  return [
    { name: 'Buffer.from', run: async () => Buffer.from(text, 'base64') },
    { name: 'offloop', run: () => decodeBase64(text, options) },
  ]
}

function byteWays(bytes: Buffer, options: Base64Options = {}): Ways {
  return [
    { name: 'Buffer.from', run: async () => Buffer.from(bytes.toString('latin1'), 'base64') },
    { name: 'offloop', run: () => decodeBase64(bytes, options) },
  ]
}

function encodeWays(bytes: Buffer): Ways {
  return [
    {
      name: 'Buffer.from(bytes.toString("base64"), "latin1")',
      run: async () => Buffer.from(bytes.toString('base64'), 'latin1'),
    },
    { name: 'encodeBase64(bytes)', run: () => encodeBase64(bytes) },
  ]
}

async function ofString(kind: Kind, text: string): Promise<string[]> {
  const nodeEncoding = kind.options.alphabet ?? 'base64'
  const contenders: Contender[] = [...stringWays(text, kind.options)]
  if (typeof fromBase64 === 'function' && kind.options.mode !== 'node') {
    contenders.push({ name: 'fromBase64', run: async () => fromBase64(text, { alphabet: nodeEncoding }) })
  }
  await check(contenders, Buffer.from(text, 'base64'))
  return row(kind, text, 'string', await compare(contenders, effort(text.length)))
}

async function ofBytes(kind: Kind, text: string): Promise<string[]> {
  const contenders = byteWays(Buffer.from(text, 'latin1'), kind.options)
  await check(contenders, Buffer.from(text, 'base64'))
  return row(kind, text, 'bytes', await compare(contenders, effort(text.length)))
}

function row(kind: Kind, text: string, form: string, measured: readonly Measured[]): string[] {
  const busy = (name: string): number => (measured.find((one) => one.name === name)?.busyMs ?? Number.NaN) * 1000
  const wall = measured.find((one) => one.name === 'offloop')?.wallMs ?? Number.NaN
  const [node, ours, other] = [busy('Buffer.from'), busy('offloop'), busy('fromBase64')]
  return [
    kind.name,
    String(text.length),
    form,
    node.toFixed(2),
    Number.isNaN(other) ? '' : other.toFixed(2),
    ours.toFixed(2),
    (ours / node).toFixed(2),
    (text.length / wall / 1e6).toFixed(2),
  ]
}

async function largestTransferred(): Promise<string[][]> {
  const text = noise((LARGEST / 4) * 3).toString('base64')
  const bytes = Buffer.from(text, 'latin1')
  const contenders: Contender[] = [
    {
      name: 'Buffer.from(bytes.toString("latin1"), "base64")',
      run: async () => Buffer.from(bytes.toString('latin1'), 'base64'),
    },
    { name: 'decodeBase64(bytes)', run: () => decodeBase64(bytes) },
    {
      name: 'decodeBase64(bytes, { transfer: true })',
      prepare: () => {
        const copy = Buffer.allocUnsafeSlow(bytes.length)
        bytes.copy(copy)
        return copy
      },
      run: (copy) => (copy instanceof Uint8Array ? decodeBase64(copy, { transfer: true }) : undefined),
    },
  ]
  const kept: unknown[] = []
  contenders.push({
    name: 'decodeBase64(bytes, { transfer: true }), results kept',
    prepare: contenders.at(-1)?.prepare ?? (() => undefined),
    run: async (copy) => kept.push(copy instanceof Uint8Array ? await decodeBase64(copy, { transfer: true }) : copy),
  })
  const measured = await compare(contenders, isQuick ? QUICK : { rounds: 5, runs: 7, calls: 1 })
  const peers = measurePython(bytes)
  const head = ['way', 'busy ms', 'wall ms', 'CPU ms, all threads', ...peers.map(({ name }) => `CPU ÷ that of ${name}`)]
  const rows = measured.map(({ name, busyMs, wallMs, cpuMs }) => {
    const ratios = peers.map((peer) => (cpuMs / peer.cpuMs).toFixed(2))
    return [name, ms(busyMs), ms(wallMs), ms(cpuMs)].concat(ratios)
  })
  return [head, ...rows, ...peers.map(({ name, cpuMs }) => [name, '', '', ms(cpuMs), '', ''])]
}

/** Nothing where Python is missing. */
function measurePython(text: Buffer): { name: string; cpuMs: number }[] {
  const interpreter = python()
  if (interpreter === undefined) return []
  const folder = mkdtempSync(join(tmpdir(), 'offloop-'))
  try {
    const path = join(folder, 'text')
    writeFileSync(path, text)
    const output = execFileSync(interpreter, ['-c', PYTHON, path], { encoding: 'utf8' })
    return output
      .trim()
      .split('\n')
      .map((line) => line.split('|'))
      .map(([name = '', cpu]) => ({ name: `pybase64 ${name}`, cpuMs: Number(cpu) }))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function blocksOfStrings(): Promise<string[][]> {
  const rows = [['size', 'bytes a character', 'way', 'median ms', 'longest ms', 'latency ms']]
  for (const size of BLOCK_SIZES) {
    const text = flat(noise((size / 4) * 3).toString('base64'))
    for (const [width, form] of [
      ['1', text],
      ['2', twoBytes(text)],
    ] as const) {
      const contenders = stringWays(form)
      await check(contenders, Buffer.from(text, 'base64'))
      for (const { name, laterMs, wallMs } of await longestBlocks(contenders, BLOCK_CALLS)) {
        rows.push([String(size), width, name, ms(median(laterMs)), ms(Math.max(...laterMs)), ms(median(wallMs))])
      }
    }
  }
  return rows
}

async function encoding(): Promise<string[][]> {
  const bytes = noise((LARGEST / 4) * 3)
  const contenders = encodeWays(bytes)
  await check(contenders, Buffer.from(bytes.toString('base64'), 'latin1'))
  const measured = await compare(contenders, isQuick ? QUICK : { rounds: 5, runs: 5, calls: 1 })
  return [
    ['way', 'busy ms', 'wall ms', 'CPU ms, all threads'],
    ...measured.map(({ name, busyMs, wallMs, cpuMs }) => [name, ms(busyMs), ms(wallMs), ms(cpuMs)]),
  ]
}

async function latencyOfStat(): Promise<string> {
  // Each call holds a copy of its text: together no more than a quarter of the machine's memory.
  const size = Math.min(LARGEST, totalmem() / 4 / QUEUED)
  const text = Buffer.from(noise(Math.floor(size / 4) * 3).toString('base64'), 'latin1')
  const latencies: number[] = []
  let left = QUEUED
  const calls = Array.from({ length: QUEUED }, async () => {
    await decodeBase64(text)
    left -= 1
  })
  const { concurrency, queued } = stats()
  // oxlint-disable-next-line no-unmodified-loop-condition -- the calls change it
  while (left > 0) {
    const start = performance.now()
    await stat('.')
    latencies.push(performance.now() - start)
  }
  await Promise.all(calls)
  latencies.sort((a, b) => a - b)
  const p99 = latencies[Math.floor(latencies.length * 0.99)] ?? Number.NaN
  return `${QUEUED} calls of ${(text.length / 1e6).toFixed(1)} MB, concurrency ${concurrency}, ${queued} queued: median ${ms(median(latencies))} ms, p99 ${ms(p99)} ms of ${latencies.length} calls of stat.`
}

async function check(contenders: readonly Contender[], expected: Buffer): Promise<void> {
  for (const { name, run } of contenders) {
    const actual = await run(undefined)
    if (!(actual instanceof Uint8Array) || !expected.equals(actual)) throw new Error(`${name} gives other bytes`)
  }
}

function effort(length: number): Effort {
  if (isQuick) return QUICK
  const calls = Math.max(1, Math.floor((256 * 1024) / length))
  return length < 8_000_000 ? { rounds: 7, runs: 30, calls } : { rounds: 5, runs: 5, calls: 1 }
}

function noise(size: number): Buffer {
  const bytes = Buffer.alloc(size)
  for (let index = 0; index < size; index += 1) bytes[index] = Math.imul(index, 0x9e37_79b1) >>> 24
  return bytes
}

function inLines(text: string): string {
  return text.replaceAll(/.{76}/g, '$&\r\n')
}

function withBad(text: string): string {
  const middle = Math.floor(text.length / 2)
  return `${text.slice(0, middle)}*${text.slice(middle + 1)}`
}

/** A part of a string with a wider character: V8 looks no further than at the whole. */
function twoBytes(text: string): string {
  return `\u4e00${text}`.slice(1)
}

/** Not a rope: V8 would flatten it in the first call. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

function ms(milliseconds: number): string {
  return milliseconds.toFixed(3)
}
