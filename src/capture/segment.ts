/**
 * Segments: the blocks of memory that tapes are made of. Each has five streams: words, doubles, bytes, the rope of short
 * strings, and the runs of that. Tapes write them on the JS thread, tasks read them. Idle ones wait for the next tape.
 */

import { makeRoom } from '../runtime/results.ts'
import { allocUnsafeSlow, bufferFrom, bufferOf, now, truncate } from '../runtime/intrinsics.ts'
import { reportUsed, TapeSegment, type TapeParts } from '../runtime/native.ts'

/** Capacity of each stream, in elements. */
export interface SegmentRoom {
  readonly words: number
  readonly doubles: number
  readonly runs: number
  readonly bytes: number
  readonly rope: number
}

/** Capacity of the segment that every tape begins with. */
const SMALL: SegmentRoom = { words: 1 << 14, doubles: 1 << 13, runs: 1 << 8, bytes: 1 << 17, rope: 1 << 18 }
/** Capacity of later segments: 1.8 MB. The longest string that gets no memory of its own takes 512 KB. */
const LARGE: SegmentRoom = { words: 1 << 17, doubles: 1 << 16, runs: 1 << 10, bytes: 1 << 19, rope: 1 << 18 }
/** Capacity of a segment for strings that are too long for the rope. */
const TEXTS: SegmentRoom = { words: 1 << 15, doubles: 1 << 12, runs: 1 << 9, bytes: 1 << 21, rope: 1 << 18 }

/** Rooms of the segments of a tape. */
export interface TapeRooms {
  /** Room of the first segment, which belongs to the tape. */
  readonly small: SegmentRoom
  readonly large: SegmentRoom
  readonly texts: SegmentRoom
}

/** Rooms of all tapes but those of tests. */
export const ROOMS: TapeRooms = { small: SMALL, large: LARGE, texts: TEXTS }

/** Words, doubles and runs that may be written between two checks of the room. */
export const WORD_MARGIN = 64
export const DOUBLE_MARGIN = 16
export const RUN_MARGIN = 4
/** Room for the characters that generated code, or a run of strings, may have joined: two bytes each, and more. */
export const ROPE_MARGIN: number = 1 << 17

// Taken on import. Segments below are linked, never in arrays: only this module can reach memory that tasks read.
const { Float64Array: Doubles, Int32Array: Words } = globalThis

/** A block of memory for the streams of a tape. One tape after the other uses it. */
export class Segment {
  /** Next segment on the stack of idle ones. */
  below: Segment | undefined
  readonly room: SegmentRoom
  readonly words: Int32Array
  readonly doubles: Float64Array
  readonly runs: Int32Array
  readonly bytes: Buffer
  readonly rope: Buffer
  readonly native: TapeSegment
  /** Whether it belongs to a snapshot. */
  isKept = false
  /** Time at which its last tape ended. */
  idleSince = 0

  constructor(room: SegmentRoom) {
    this.room = room
    const words = room.doubles * 8
    const runs = words + room.words * 4
    const bytes = runs + room.runs * 4
    const rope = bytes + room.bytes
    const memory = allocUnsafeSlow(rope + room.rope)
    madeSize += rope + room.rope
    const buffer = bufferOf(memory)
    this.doubles = new Doubles(buffer, 0, room.doubles)
    this.words = new Words(buffer, words, room.words)
    this.runs = new Words(buffer, runs, room.runs)
    this.bytes = bufferFrom(buffer, bytes, room.bytes)
    this.rope = bufferFrom(buffer, rope, room.rope)
    this.native = new TapeSegment(memory, room.words, room.doubles, room.bytes, room.runs, kindOf(room) !== undefined)
  }
}

let madeSize = 0

/** Returns the bytes of all segments that were made, for tests. */
export function madeBytes(): number {
  return madeSize
}

/** Stacks of large segments that no tape uses. */
const idle: { large: Segment | undefined; texts: Segment | undefined } = { large: undefined, texts: undefined }

function kindOf(room: SegmentRoom): keyof typeof idle | undefined {
  if (room === LARGE) return 'large'
  return room === TEXTS ? 'texts' : undefined
}

/** Returns whether a segment can serve one tape after the other. */
export function isLarge({ room }: Segment): boolean {
  return kindOf(room) !== undefined
}

/** Takes an idle segment, or makes one. */
export function takeSegment(room: SegmentRoom): Segment {
  const kind = kindOf(room)
  return (kind === undefined ? undefined : takeIdle(kind)) ?? new Segment(room)
}

function takeIdle(kind: keyof typeof idle): Segment | undefined {
  const segment = idle[kind]
  if (segment === undefined) return undefined
  idle[kind] = segment.below
  segment.below = undefined
  reportUsed(sizeOf(segment.room))
  return segment
}

/** Makes a segment idle. No tape uses it, and no task reads it. */
export function giveIdle(segment: Segment): void {
  const kind = kindOf(segment.room)
  // Segments above the bound are left to the collector.
  if (kind === undefined || !makeRoom(sizeOf(segment.room))) return
  segment.idleSince = now()
  segment.below = idle[kind]
  idle[kind] = segment
}

/** Leaves segments that have been idle for `idleMs` to the collector. The longest idle ones are at the bottom. */
export function releaseSegments(idleMs: number): void {
  releaseOlder('large', now() - idleMs)
  releaseOlder('texts', now() - idleMs)
}

function releaseOlder(kind: keyof typeof idle, latest: number): void {
  let last: Segment | undefined
  let segment = idle[kind]
  for (; segment !== undefined && latest < segment.idleSince; segment = segment.below) last = segment
  if (last === undefined) idle[kind] = undefined
  else last.below = undefined
  for (; segment !== undefined; segment = segment.below) reportUsed(sizeOf(segment.room))
}

/** A full segment, and how much of it is written. */
export interface Sealed {
  /** Segment sealed after this one. */
  next: Sealed | undefined
  readonly segment: Segment
  readonly words: number
  readonly doubles: number
  readonly bytes: number
  readonly rope: number
  readonly runs: number
  /** Long strings of the tape so far, and their bytes. */
  readonly longs: number
  readonly longSize: number
  readonly longPackedSize: number
}

/** Returns the bytes of a room, or of what is written. */
export function sizeOf({ words, doubles, bytes, rope, runs }: SegmentRoom): number {
  return (words + runs) * 4 + doubles * 8 + bytes + rope
}

/** Factor for escapes and long numbers. */
const USUAL_GROWTH = 1.25
/** Bytes added to a guess: the printer of strings never asks for more at once. */
export const SLACK: number = 2 * 1024

/** Recycled memory for what a task prints. Most results fit, and it can grow. `usual` is the tape's estimate. */
export function expectedOf(usual: number): number {
  return truncate(usual * USUAL_GROWTH) + SLACK
}

/** Adds what is written to the memory for a task. */
export function addSegment(parts: TapeParts, { segment, words, doubles, bytes, rope, runs }: Sealed): void {
  parts.addSegment(segment.native, words, doubles, bytes, rope, runs)
}

export function wordsOf({ words }: Sealed): number {
  return words
}

/** Estimated bytes of MessagePack. */
export function usualPackedSizeOf({ words, doubles, bytes, rope }: Sealed): number {
  return words * 3 + doubles * 9 + bytes + rope
}

/** Estimated bytes of JSON, if nothing is escaped and numbers have usual lengths. */
export function usualSizeOf({ words, doubles, bytes, rope }: Sealed): number {
  return words * 6 + doubles * 18 + bytes + rope
}
