/**
 * What a process holds that stands between agents and a model: four rollouts at a time, 45 turns each, every turn's body all
 * that came before and one more screenshot. With a registry that only adds, a Map that forgets, and the store.
 * `npm run bench -- memory`, on Linux.
 */

import { fork, type ChildProcess } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { LIVE_MB } from './heap.ts'
import { median, report, table } from './measure.ts'

const ROLLOUTS = 4
const TURNS = 45
/** Of a screenshot, before base64. */
const IMAGE_SIZE = 170_000
/** Until memory is called resting: V8 collects what is left within ten seconds, or not at all. */
const REST_MS = 25_000
const ROUNDS = 3
const GOALS = { peak: 3.8, rest: 6.4 }

const KINDS = {
  naive: 'a Map that keeps what was delivered',
  map: 'a Map that forgets it',
  store: '`createRolloutStore`',
} as const
type Kind = keyof typeof KINDS
const names: readonly Kind[] = ['naive', 'map', 'store']

interface Looked {
  readonly peak: number
  readonly now: number
  readonly longestMs: number
  readonly trims?: number
}

interface Held {
  readonly startMb: number[]
  readonly peakMb: number[]
  readonly restMb: number[]
  readonly longestMs: number[]
  readonly trims: number[]
}

const held = Object.fromEntries(
  names.map((name): [string, Held] => [name, { startMb: [], peakMb: [], restMb: [], longestMs: [], trims: [] }]),
)
for (let round = 0; round < ROUNDS; round += 1) for (const name of names) await add(name)
report('Memory of rollouts', [
  `${ROLLOUTS} rollouts at a time, ${TURNS} turns each, every body all that came before and an image of ${IMAGE_SIZE / 1000} KB as base64: ${sizes()}. They come over HTTP on loopback to a process of its own, which is asked for a digest of each, so that none is lost or mixed up. Resident MB, medians of ${ROUNDS} runs; resting is ${REST_MS / 1000} s after the last turn. The first is what the published 1,053 MB peak, 990 MB resting are of: a registry that only adds.`,
  table(rows()),
  `With ${LIVE_MB} MB of other live objects in the same process, one run: ${await longestBesideHeap()}.`,
  `Goals: peak at most 1/${GOALS.peak}, resting at most 1/${GOALS.rest} of the first. The peak goes with the bodies, whoever forgets them; what trimming adds is the resting memory, down to what V8 has not collected.`,
])

async function add(name: Kind): Promise<void> {
  const child = start(name)
  try {
    const url = `http://127.0.0.1:${await portOf(child)}/`
    const of = held[name]
    of?.startMb.push((await look(url)).now / 1e6)
    await rollOutAll(url)
    const { longestMs } = await look(url)
    await sleep(REST_MS)
    const { peak, now, trims = 0 } = await look(url)
    of?.peakMb.push(peak / 1e6)
    of?.restMb.push(now / 1e6)
    of?.longestMs.push(longestMs)
    of?.trims.push(trims)
  } finally {
    child.kill()
  }
}

/** The longest block of the loop beside a live heap, which would only add itself to the memory. */
async function longestBesideHeap(): Promise<string> {
  const texts: string[] = []
  for (const name of names) {
    // The live heap is made by TypeScript.
    const child = start(name, [String(LIVE_MB)], ['--import', '@oxc-node/core/register'])
    try {
      const url = `http://127.0.0.1:${await portOf(child)}/`
      await rollOutAll(url)
      texts.push(`${KINDS[name]}: longest block ${(await look(url)).longestMs.toFixed(0)} ms`)
    } finally {
      child.kill()
    }
  }
  return texts.join('; ')
}

function start(name: Kind, args: readonly string[] = [], execArgv: string[] = []): ChildProcess {
  return fork(fileURLToPath(new URL('interceptor.mjs', import.meta.url)), [name, ...args], { execArgv })
}

function rollOutAll(url: string): Promise<unknown> {
  return Promise.all(Array.from({ length: ROLLOUTS }, (_, index) => rollOut(`${url}${index}`)))
}

async function portOf(child: ChildProcess): Promise<number> {
  const [port] = await once(child, 'message')
  return Number(port)
}

async function look(url: string): Promise<Looked> {
  const response = await fetch(url)
  return JSON.parse(await response.text())
}

async function rollOut(url: string): Promise<void> {
  const messages: Buffer[] = []
  for (let turn = 0; turn < TURNS; turn += 1) {
    messages.push(Buffer.from(message()))
    const body = bodyOf(messages)
    const response = await fetch(`${url}/${turn}`, { method: 'POST', body })
    const { digest } = JSON.parse(await response.text())
    if (digest !== createHash('sha256').update(body).digest('hex')) throw new Error(`turn ${turn}: another body`)
  }
}

function message(): string {
  const url = `data:image/png;base64,${randomBytes(IMAGE_SIZE).toString('base64')}`
  return JSON.stringify({ role: 'user', content: [{ type: 'image_url', image_url: { url } }] })
}

function bodyOf(messages: readonly Buffer[]): Buffer<ArrayBuffer> {
  const comma = Buffer.from(',')
  const parts = messages.flatMap((part, index) => (index === 0 ? [part] : [comma, part]))
  return Buffer.concat([Buffer.from('{"model":"m","messages":['), ...parts, Buffer.from(']}')])
}

function sizes(): string {
  const image = message().length
  const all = (ROLLOUTS * image * TURNS * (TURNS + 1)) / 2
  return `0.2 to ${((image * TURNS) / 1e6).toFixed(1)} MB, ${(all / 1e6).toFixed(0)} MB in all`
}

function rows(): string[][] {
  const [naivePeak, naiveRest] = [median(held['naive']?.peakMb ?? []), median(held['naive']?.restMb ?? [])]
  const body = names.map((name) => {
    const { startMb = [], peakMb = [], restMb = [], longestMs = [], trims = [] } = held[name] ?? {}
    const [peak, rest] = [median(peakMb), median(restMb)]
    const less = (all: number, part: number): string => (name === 'naive' ? '' : `1/${(all / part).toFixed(1)}`)
    return [
      KINDS[name],
      median(startMb).toFixed(0),
      peak.toFixed(0),
      less(naivePeak, peak),
      rest.toFixed(0),
      less(naiveRest, rest),
      median(longestMs).toFixed(0),
      median(trims).toFixed(0),
    ]
  })
  return [['registry', 'start', 'peak', '', 'resting', '', 'longest block of the loop, ms', 'trims'], ...body]
}
