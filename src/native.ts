/** The one importer of the addon. What fails there comes back as data, and becomes an error here, with the caller's stack. */

import { __napiBindingTarget, VERSION, type Failure } from '../binding.js'
import { OffloopError, systemError, type ErrorCode } from './errors.ts'

export {
  Base64Alphabet,
  Base64Decoder,
  Base64Mode,
  BodyText,
  closeLogFile,
  copyRows,
  countRows,
  bindDesk,
  decodeBase64,
  decodeBase64InPlace,
  decodeBase64Part,
  decodeBase64Sync,
  decodeBase64TextSync,
  dropSaved,
  encodeBase64,
  encodeBase64Sync,
  encodeTape,
  encodeTapeSync,
  ExpertsDtype,
  ExpertsFill,
  ExpertsForm,
  ExpertsTurns,
  FileDurability,
  fillBody,
  fillBodySync,
  fillExperts,
  fillExpertsSync,
  Fragment,
  idleBytes,
  joinPieces,
  joinPiecesSync,
  KeptParts,
  Lane,
  Layout,
  Lexicon,
  Lift,
  LogFile,
  lookAtExperts,
  lookAtExpertsSync,
  maxIdleBytes,
  nextRows,
  openLogFile,
  Pieces,
  poolStats,
  prewarm,
  PrintedPage,
  printPage,
  printPageSync,
  Progress,
  releaseIdle,
  releaseSlot,
  RepairAction,
  repairFile,
  reserveSlot,
  RowCause,
  RowsReader,
  saveBytes,
  SavedFile,
  saveSheet,
  scanBody,
  scanBodySync,
  setConcurrency,
  setMaxIdleBytes,
  Slab,
  Source,
  Stop,
  TailPolicy,
  takeSpill,
  takeSpillSync,
  TapeParts,
  TapeSegment,
  writeGroup,
  writeGroupSync,
  trimHeap,
} from '../binding.js'
export type {
  ExpertsHints as NativeHints,
  ExpertsRules,
  Failure,
  GroupWritten,
  OpenSettings,
  Planned,
  Repaired,
  RepairSettings,
} from '../binding.js'

export const version: string = VERSION
export const backend: 'native' | 'wasm' = __napiBindingTarget === 'native' ? 'native' : 'wasm'

/** The code of a task that was stopped; the error of the call is then the signal's reason. */
export const ABORTED = 'ABORT_ERR'

/** What the addon did, or the error of why it could not. */
export function unwrap<T extends number | string | boolean | object>(outcome: T | Failure): T {
  if (isFailure(outcome)) throw errorOf(outcome)
  return outcome
}

function isFailure(outcome: number | string | boolean | object): outcome is Failure {
  return typeof outcome === 'object' && 'code' in outcome
}

/** Throws what a method of the addon reports. */
export function check(failure: Failure | null): void {
  if (failure !== null) throw errorOf(failure)
}

export function errorOf(failure: Failure): Error {
  const { code, message, offset, pointer, turn, path = '', errno, syscall = '' } = failure
  if (errno !== undefined) return systemError(errno, message, syscall, path)
  // The addon's table of codes holds those of the contract alone, a test compares them.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return new OffloopError(code as ErrorCode, message, { offset, pointer, turn, path: failure.path })
}
