/** The decision between JSON.stringify and the capture: looks at values, path nodes, and what user code sees of both. */

import test from 'ava'
import { requestFunction } from '../src/capture/learning.ts'
import { winsCold, winsWarm } from '../src/capture/look.ts'
import { CANDIDATE, ENGINE, LEARNED, OPEN, PathNode, UNKNOWN } from '../src/capture/path-node.ts'
import { tuning } from '../src/capture/tuning.ts'
import { Vocabulary } from '../src/capture/vocabulary.ts'
import { createEncoder, encode, encodeLines, encodeSync } from '../src/index.ts'

const NUMBERS = Array.from({ length: 10_000 }, (_, index) => index / 3)
const TEXT = 'a long text. '.repeat(1000)
const DATES = Array.from({ length: 20_000 }, (_, index) => new Date(index))
const RECORDS = Array.from({ length: 100 }, (_, id) => ({ id, name: `name ${id}`, ok: true, tags: ['a', 'b'] }))

test('a look finds what a cold walk is faster for', (t) => {
  for (const value of [NUMBERS, { a: { b: NUMBERS } }, [{ role: 'user', content: TEXT }], DATES, [TEXT, 1]]) {
    t.true(winsCold(value, true))
  }
  for (const value of [RECORDS, { a: 1 }, [], {}, [[]], ['a', 'b'], { text: 'short' }, [1, 2]]) {
    t.false(winsCold(value, true))
  }
})

test('values that begin alike share a path node, and no keys of bytes or boxed strings are listed', (t) => {
  const vocabulary = new Vocabulary(() => undefined)
  const bytes = new Uint8Array(1000)
  t.is(vocabulary.rootOf({ a: 1 }), vocabulary.rootOf({ a: 2, b: 3 }))
  t.not(vocabulary.rootOf({ a: 1 }), vocabulary.rootOf({ b: 1 }))
  t.not(vocabulary.rootOf([{ a: 1 }]), vocabulary.rootOf([{ b: 1 }]))
  t.not(vocabulary.rootOf([1]), vocabulary.rootOf(['1']))
  for (const value of [bytes, Buffer.from('text'), Object('text')]) {
    t.is(vocabulary.rootOf(value), vocabulary.rootOf(bytes))
    t.is(vocabulary.rootOf(value).state, OPEN)
    t.is(vocabulary.rootOf([value]), vocabulary.rootOf([bytes]))
  }
})

test('a look is deep enough for the numbers of rollouts, and knows what wide strings cost', (t) => {
  const turn = { role: 'assistant', ids: NUMBERS.map((_, id) => id), logprobs: NUMBERS, stop: null, seconds: 1.5 }
  const rollout = {
    id: 1,
    task: 'a task',
    seed: 7,
    reward: 0.5,
    done: true,
    env: 'shell',
    meta: { a: 1 },
    turns: [turn, turn],
  }
  t.true(
    winsCold(
      Array.from({ length: 16 }, () => rollout),
      true,
    ),
  )
  const messages = (content: string): unknown[] => Array.from({ length: 1000 }, () => ({ role: 'user', content }))
  t.true(winsCold(messages('\u4e2d'.repeat(1000)), true))
  t.false(winsCold(messages('a'.repeat(1000)), true))
})

test('a node that is left to the engine never learns', (t) => {
  const node = new PathNode(true)
  node.leaveToEngine()
  node.addCost(1e9, 1)
  t.false(node.isLearningDue)
})

test.serial('a node waits after a lesson that throws', (t) => {
  const vocabulary = new Vocabulary(requestFunction)
  let words = 0
  vocabulary.word = (): never => {
    words += 1
    throw new Error('a replaced built-in')
  }
  const node = vocabulary.rootOf(RECORDS)
  const { sliceGapMs } = tuning
  tuning.sliceGapMs = 0
  try {
    for (let call = 0; call < 3; call += 1) {
      node.addCost(tuning.learnFromMs, RECORDS.length)
      vocabulary.learnFrom(node, RECORDS)
    }
  } finally {
    tuning.sliceGapMs = sliceGapMs
  }
  t.is(words, 1)
  t.false(node.isQueued)
})

test('a small part of a value that is walked is walked too', (t) => {
  t.false(winsCold({ a: 1 }, true))
  t.true(winsCold({ a: 1 }, false))
  t.false(winsCold(RECORDS, false))
})

test('a look runs no code of the value', (t) => {
  const evil = (): never => {
    throw new Error('code of the value')
  }
  const trap = new Proxy({}, { get: evil, getPrototypeOf: evil, ownKeys: evil, getOwnPropertyDescriptor: evil })
  const values = [
    [trap, trap],
    { a: trap, list: [1, trap] },
    Object.defineProperty({}, 'a', { enumerable: true, get: evil }),
    Object.defineProperty([1], '0', { get: evil }),
    { toJSON: evil },
    Object.create(trap, { a: { value: 1, enumerable: true } }),
  ]
  for (const value of values) {
    t.notThrows(() => winsCold(value, true))
    t.notThrows(() => winsWarm(value))
  }
})

test('a look ends, whatever the value holds', (t) => {
  const endless: Record<string, unknown> = {}
  for (let index = 0; index < 64; index += 1) endless[`k${index}`] = endless
  t.false(winsCold(endless, true))
  t.false(
    winsCold(
      Array.from({ length: 1_000_000 }, () => endless),
      true,
    ),
  )
})

test('a node that is new goes by the look', (t) => {
  const node = new PathNode(true)
  t.is(node.state, UNKNOWN)
  t.is(node.wayOf(RECORDS), ENGINE)
  t.is(node.state, ENGINE)
  t.is(new PathNode(true).wayOf(NUMBERS), OPEN)
})

test('a node of the engine is looked at again after enough text, and ever more rarely', (t) => {
  const node = new PathNode(true)
  node.wayOf(RECORDS)
  node.addText(tuning.lookAgainBytes - 1, true)
  t.is(node.wayOf(NUMBERS), ENGINE)
  node.addText(1, true)
  t.is(node.wayOf(RECORDS), ENGINE)
  node.addText(tuning.lookAgainBytes, true)
  t.is(node.wayOf(NUMBERS), ENGINE)
  node.addText(tuning.lookAgainBytes, true)
  t.is(node.wayOf(NUMBERS), OPEN)
})

/** A node of the engine whose values cost a millisecond for each of ten elements, and have a function. */
function candidate(): PathNode {
  const node = new PathNode(true)
  node.wayOf(RECORDS)
  for (let run = 0; run < 10; run += 1) node.addCost(10, 10)
  node.learn({ isObject: false, capture: (_context, _value, _start, end) => end, levels: 1 })
  return node
}

test('learning is due when values have cost enough, and once', (t) => {
  const node = new PathNode(true)
  node.wayOf(RECORDS)
  t.false(node.isLearningDue)
  node.addCost(tuning.learnFromMs, 10)
  t.true(node.isLearningDue)
  node.isQueued = true
  t.false(node.isLearningDue)
  node.isQueued = false
  t.false(node.pays(tuning.learnFromMs / tuning.msPerProperty + 1))
  t.false(node.isLearningDue)
  node.addCost(tuning.learnFromMs, 10)
  t.true(node.isLearningDue)
})

test('a function that is faster is learned', (t) => {
  const node = candidate()
  t.is(node.state, CANDIDATE)
  for (let run = 0; run < tuning.provenRuns; run += 1) {
    t.is(node.wayOf(RECORDS), LEARNED)
    node.addRun(5, 10, false)
  }
  t.is(node.state, LEARNED)
})

test('a trial takes at most its share of the cost, and ends', (t) => {
  const node = candidate()
  let [trial, base] = [0, 100]
  for (let run = 0; run < 1000 && node.state === CANDIDATE; run += 1) {
    if (node.wayOf(RECORDS) === LEARNED) {
      t.true(trial <= base * tuning.trialShare)
      node.addRun(12, 10, false)
      trial += 12
    } else {
      node.addCost(10, 10)
      base += 10
    }
  }
  t.is(node.state, ENGINE)
  t.is(node.learned, undefined)
  // The one back-off.
  node.addCost(tuning.learnFromMs * (tuning.backOff - 1), 10)
  t.false(node.isLearningDue)
  node.addCost(tuning.learnFromMs, 10)
  t.true(node.isLearningDue)
})

/** A node whose function was learned. */
function learned(): PathNode {
  const node = candidate()
  for (let run = 0; run < tuning.provenRuns; run += 1) {
    node.wayOf(RECORDS)
    node.addRun(5, 10, false)
  }
  return node
}

test('the way before a function is measured again, ever more rarely', (t) => {
  const node = learned()
  const measured: number[] = []
  for (let value = 0; value < 5000; value += 1) {
    if (node.wayOf(RECORDS) === ENGINE) measured.push(value)
  }
  t.deepEqual(measured.slice(0, 2), [tuning.measureAgain, tuning.measureAgain * 3 + 1])
  t.true(measured.length <= 8)
})

test('a function that is slower than the way before is dropped', (t) => {
  const node = learned()
  for (let run = 0; run < 20 && node.state === LEARNED; run += 1) node.addRun(20, 10, false)
  t.is(node.state, ENGINE)
})

test('a function that gives up again and again is dropped', (t) => {
  const node = learned()
  for (let run = 0; run < tuning.mostGivenUp; run += 1) node.addRun(5, 10, true)
  node.addRun(5, 10, false)
  t.is(node.state, LEARNED)
  for (let run = 0; run <= tuning.mostGivenUp; run += 1) node.addRun(5, 10, true)
  t.is(node.state, ENGINE)
})

for (const [name, beside] of Object.entries({ 'JSON.stringify': null, 'a walk': NUMBERS })) {
  test(`user code runs once, in order, with its real key: ${name}`, async (t) => {
    const calls: string[] = []
    const answering = (label: string): object => ({
      toJSON(key: string): string {
        calls.push(`${label} ${key}`)
        return label
      },
    })
    const make = (): unknown => ({
      beside,
      first: answering('first'),
      list: [answering('zero'), [answering('inner')], { deep: answering('deep') }],
      records: [...RECORDS.slice(0, 50), { id: 50, name: 'odd', odd: answering('odd') }, ...RECORDS.slice(51)],
    })
    const expected = JSON.stringify(make())
    const inOrder = calls.splice(0)
    t.deepEqual(inOrder, ['first first', 'zero 0', 'inner 0', 'deep deep', 'odd odd'])
    const encoder = createEncoder()
    for (let time = 0; time < 4; time += 1) {
      for (const make2 of [
        () => encode(make()),
        () => encodeSync(make()),
        () => encoder.encode(make()),
        () => encodeLines([make()]),
      ]) {
        t.is((await make2()).toString().trimEnd(), expected)
        t.deepEqual(calls.splice(0), inOrder)
      }
    }
  })
}
