/** The one importer of the addon. What fails there comes back as data, and becomes an error here, with the caller's stack. */

import { __napiBindingTarget, VERSION, type Failure } from '../binding.js'
import { OffloopError, type ErrorCode } from './errors.ts'

export {
  Base64Alphabet,
  Base64Decoder,
  Base64Mode,
  BodyText,
  bindDesk,
  decodeBase64,
  decodeBase64InPlace,
  decodeBase64Part,
  decodeBase64Sync,
  decodeBase64TextSync,
  encodeBase64,
  encodeBase64Sync,
  encodeTape,
  encodeTapeSync,
  ExpertsDtype,
  ExpertsFill,
  ExpertsForm,
  ExpertsTurns,
  fillBody,
  fillBodySync,
  fillExperts,
  fillExpertsSync,
  Fragment,
  idleBytes,
  KeptParts,
  Lane,
  Layout,
  Lexicon,
  Lift,
  lookAtExperts,
  lookAtExpertsSync,
  maxIdleBytes,
  poolStats,
  prewarm,
  releaseIdle,
  releaseSlot,
  reserveSlot,
  scanBody,
  scanBodySync,
  setConcurrency,
  setMaxIdleBytes,
  Slab,
  Source,
  Stop,
  takeSpill,
  takeSpillSync,
  TapeParts,
  TapeSegment,
} from '../binding.js'
export type { ExpertsHints as NativeHints, ExpertsRules, Failure, Planned } from '../binding.js'

export const version: string = VERSION
export const backend: 'native' | 'wasm' = __napiBindingTarget === 'native' ? 'native' : 'wasm'

/** The code of a task that was stopped; the error of the call is then the signal's reason. */
export const ABORTED = 'ABORT_ERR'

/** What the addon did, or the error of why it could not. */
export function unwrap<T extends number>(outcome: T | Failure): T {
  if (typeof outcome === 'object') throw errorOf(outcome)
  return outcome
}

/** Throws what a method of the addon reports. */
export function check(failure: Failure | null): void {
  if (failure !== null) throw errorOf(failure)
}

export function errorOf({ code, message, offset, pointer, turn }: Failure): OffloopError {
  // The addon's table of codes holds those of the contract alone, a test compares them.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return new OffloopError(code as ErrorCode, message, { offset, pointer, turn })
}
