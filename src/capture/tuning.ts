/**
 * Every constant of the decision between JSON.stringify and the capture, with the measurement behind it. Tests change
 * them to reach each way with small values. Read on the JS thread by `look.ts`, `path-node.ts` and `learning.ts`.
 *
 * Measured on 2 cores of an AMD EPYC with Node 24, unless said otherwise; `benchmark/json-calls.ts` repeats it.
 */

export interface Tuning {
  // ── a look at a value (`look.ts`) ──
  /** Most values that a look reads: 0.2 ms in a new process, 12 µs once V8 has optimised the look. */
  mostLooked: number
  /** Most keys of one object that a look reads. Rollouts, spans and responses have at most 20. */
  mostKeysLooked: number
  /** Nanoseconds that a cold walk takes longer for a small value than JSON.stringify: 0.3–1.5 µs. */
  smallPenaltyNs: number
  /** Small values after which V8 has optimised the walk. */
  smallUntilWarm: number
  /** Nanoseconds that a warm walk, without a generated function, takes longer for a small value than JSON.stringify. */
  warmPenaltyNs: number
  /** Least length of a string whose copy saves more than its walk costs: JSON.stringify takes 0.5–1.5 ns a character. */
  longString: number
  /** Nanoseconds that a copy saves for a character of a long string: JSON.stringify and Buffer.from, less the copy. */
  savedPerCharacterNs: number
  /** Nanoseconds for a character above U+00FF: JSON.stringify and Buffer.from take 7 ns. */
  savedPerWideCharacterNs: number
  /** Nanoseconds that a copy saves for an integer, and for a double: JSON.stringify takes 11–24 and 40–110 ns. */
  savedPerIntNs: number
  savedPerDoubleNs: number
  /** Nanoseconds saved for a date: JSON.stringify calls its toJSON, 400–700 ns. */
  savedPerDateNs: number
  /** Nanoseconds saved for a byte of a Buffer: JSON.stringify calls its toJSON, which makes an array. */
  savedPerByteNs: number
  /** Most small values of a part, inside of a value that is walked, that is walked too: JSON.stringify has 0.3 µs of its own. */
  smallPart: number
  /** Share of the expected saving that must be left when the penalties are taken off. */
  leastGain: number
  /** Bytes of JSON.stringify at a path node between two looks; doubles with each look that changes nothing. */
  lookAgainBytes: number
  mostLookAgainBytes: number
  /** Characters of the text before from which JSON.stringify is timed. */
  timedText: number
  /** Milliseconds that stand for a character of JSON.stringify where it is not timed. */
  msPerCharacter: number

  // ── learning (`learning.ts`) ──
  /** Milliseconds that values of a path node cost before a function is generated for them. Generating takes 3–5 ms. */
  learnFromMs: number
  /** Milliseconds that a function costs for each property until V8 has optimised it. */
  msPerProperty: number
  /** Factor of the cost from which learning is tried again after it failed: the one back-off. */
  backOff: number
  mostBackOff: number
  /** Least length of an array whose elements get a function. */
  leastElements: number
  /** Most values that one sketch reads: twice as many as a rollout with its turns has. */
  mostSampled: number
  /** Milliseconds between two slices of learning, each of which takes about one. Tests set 0: they learn at once. */
  sliceGapMs: number
  /** Milliseconds by which a slice may come late before the loop counts as busy, and how often a slice then waits. */
  busyFromMs: number
  mostWaits: number

  // ── trial of a generated function (`path-node.ts`) ──
  /** Share of the cost so far that a trial may take: the function is slow until V8 has optimised it. */
  trialShare: number
  /** A trial ends without success after so many runs, when it has taken so many times what it took to begin. */
  leastRuns: number
  mostTrial: number
  /** A function is used for good when it takes at most this share of the time of the way before. */
  provenAt: number
  /** Runs that prove it. */
  provenRuns: number
  /** A learned function is dropped when it takes more than this share of the time of the way before. */
  droppedAt: number
  /** Values between two for which the way before is measured again; doubles each time, up to the bound. */
  measureAgain: number
  mostMeasureAgain: number
  /** Runs given up in a row after which a function is dropped. */
  mostGivenUp: number

  // ── small values (`src/encode/root-text.ts`) ──
  /** Length of text from which the next values are looked at. A look-up of the path node takes 25 ns. */
  smallText: number
  /** Values that `encode` looks at first, and values that are looked at after a large one. */
  firstPeeks: number
  peeks: number
  /** Characters that `encodeSync` stringifies before it looks at any value: its values are small, a cold look is not. */
  syncUnseen: number

  // ── the rehearsal (`src/encode/warm-up.ts`) ──
  /** Whether the first idle turns after the import rehearse a call. Tests that count tasks or memory do without. */
  isRehearsed: boolean
}

export const tuning: Tuning = {
  mostLooked: 128,
  mostKeysLooked: 24,
  smallPenaltyNs: 800,
  smallUntilWarm: 2000,
  warmPenaltyNs: 60,
  longString: 256,
  savedPerCharacterNs: 1,
  savedPerWideCharacterNs: 4,
  savedPerIntNs: 8,
  savedPerDoubleNs: 40,
  savedPerDateNs: 400,
  savedPerByteNs: 10,
  smallPart: 16,
  leastGain: 0.3,
  lookAgainBytes: 64 * 1024,
  mostLookAgainBytes: 4 * 1024 * 1024,
  timedText: 4096,
  msPerCharacter: 1e-6,

  learnFromMs: 10,
  msPerProperty: 0.15,
  backOff: 4,
  mostBackOff: 4096,
  leastElements: 16,
  mostSampled: 768,
  sliceGapMs: 1,
  busyFromMs: 4,
  mostWaits: 16,

  trialShare: 0.5,
  leastRuns: 8,
  mostTrial: 2,
  provenAt: 0.85,
  provenRuns: 2,
  droppedAt: 1,
  measureAgain: 64,
  mostMeasureAgain: 1024,
  mostGivenUp: 3,

  smallText: 3072,
  firstPeeks: 8,
  peeks: 256,
  syncUnseen: 256 * 1024,

  isRehearsed: true,
}
