/**
 * The path of open containers: finds containers that contain themselves, and refuses those that are too deep. Runs on
 * the JS thread; both walks call it.
 */

import { newMap } from '../runtime/intrinsics.ts'
import { circularError } from './circular.ts'
import type { CaptureContext } from './context.ts'
import { NULL } from './opcodes.ts'
import { tooDeep } from './pointer.ts'

/**
 * Puts a container on the path and returns true. For one that is on the path already it throws what JSON.stringify
 * throws, or writes the text of the rules and returns false.
 */
export function enter(context: CaptureContext, name: string | number, value: object): boolean {
  const { path, depth } = context
  for (let index = depth - 1; 0 <= index; index -= 1) if (path[index] === value) return meetAgain(context, index, name)
  push(context, name, value)
  return true
}

/** Depth from which ancestors are looked up in a map. */
export const DEEP_FROM = 64

/** Ancestors on a deep path, by identity. */
export class DeepPath {
  readonly #context: CaptureContext
  /** Index of each container in the path. */
  readonly #indexes: Map<unknown, number> = newMap()

  constructor(context: CaptureContext) {
    this.#context = context
    const { path, depth } = context
    for (let index = 0; index < depth; index += 1) this.#indexes.set(path[index], index)
  }

  /** Puts a container on the path as `enter` does. */
  enter(name: string | number, value: object): boolean {
    const context = this.#context
    const start = this.#indexes.get(value)
    if (start !== undefined) return meetAgain(context, start, name)
    this.#indexes.set(value, context.depth)
    push(context, name, value)
    return true
  }

  leave(value: object): void {
    this.#indexes.delete(value)
  }
}

function push(context: CaptureContext, name: string | number, value: object): void {
  if (context.rules.maxDepth <= context.depth) throw tooDeep(context, name)
  context.path[context.depth] = value
  context.names[context.depth] = name
  context.depth += 1
}

function meetAgain(context: CaptureContext, start: number, name: string | number): false {
  const { circular, target } = context.rules
  context.room()
  if (circular !== undefined) {
    context.string(circular)
    return false
  }
  const error = circularError(context.path, context.names, start, context.depth, name)
  if (target !== 'msgpack') throw error
  refuse(context, error)
  return false
}

/** Refuses a value that MessagePack cannot express: throws the error, or keeps it until MessagePack is asked for. */
export function refuse(context: CaptureContext, error: unknown): void {
  if (!context.isPart) throw error
  context.msgpackError ??= error
  context.literal(NULL)
}
