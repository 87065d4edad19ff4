/**
 * Imports the addon; no other file does. The addon returns failures as data; they become errors here, with the caller's
 * stack. Runs on the JS thread.
 */

import { VERSION, type Failure } from '../../binding.js'
import { OffloopError, systemError, type ErrorCode } from './errors.ts'
import { hasOwn } from './intrinsics.ts'
import { withoutPrototype } from './options.ts'

export {
  Base64Alphabet,
  Base64Decoder,
  Base64Mode,
  closeLogFile,
  copyInput,
  copyRows,
  countRows,
  bindSmallEncoder,
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
  EventStream,
  ExpertsFill,
  ExpertsFormat,
  ExpertsTurns,
  fillBody,
  fillBodySync,
  fillExperts,
  fillExpertsSync,
  RawJsonBytes,
  idleBytes,
  joinPieces,
  joinPiecesSync,
  SnapshotParts,
  Lane,
  Layout,
  Lexicon,
  LiftPointers,
  LogFile,
  maxIdleBytes,
  nextRows,
  openLogFile,
  Pieces,
  poolStats,
  prewarm,
  PrintedPage,
  printPage,
  printPageSync,
  printSegments,
  printSegmentsSync,
  releaseIdle,
  reportIdle,
  reportUsed,
  releaseSlot,
  repairFile,
  reserveSlot,
  RowsReader,
  saveBytes,
  SavedFile,
  saveTape,
  scanBody,
  scanBodySync,
  scanExperts,
  scanExpertsSync,
  setConcurrency,
  setMaxIdleBytes,
  SmallOutput,
  InputBytes,
  Stop,
  takeOverflow,
  takeOverflowSync,
  TapeParts,
  TapeSegment,
  TaskProgress,
  writeGroup,
  writeGroupSync,
  trimHeap,
} from '../../binding.js'
export type {
  ExpertsLayout,
  Failure,
  GroupReport,
  OpenLogInput,
  PrintPageInput,
  RepairInput,
  RepairOutcome,
  SaveTapeInput,
  WriteGroupInput,
  NativeConcatConfig,
  NativeHints,
  ScannedBody,
} from '../../binding.js'

export const version: string = VERSION
/** The loader takes no other addon. */
export const backend: 'native' | 'wasm' = 'native'

/** Code of a stopped task. The error of the call is then the signal's reason. */
export const ABORTED = 'ABORT_ERR'

/** Returns the outcome of the addon, or throws the error of its failure. */
export function unwrap<T extends number | string | boolean | object>(outcome: T | Failure): T {
  if (isFailure(outcome)) throw errorOf(outcome)
  return outcome
}

export function isFailure(outcome: unknown): outcome is Failure {
  return typeof outcome === 'object' && outcome !== null && hasOwn(outcome, 'code')
}

/** Throws the failure that a method of the addon reports. */
export function check(failure: Failure | null): void {
  if (failure !== null) throw errorOf(failure)
}

export function errorOf(failure: Failure): Error {
  const { code, message, offset, pointer, turn, path, errno, syscall = '' } = withoutPrototype(failure)
  if (errno !== undefined) return systemError(errno, message, syscall, path ?? '')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a test compares the addon's codes with the contract
  return new OffloopError(code as ErrorCode, message, { offset, pointer, turn, path })
}
