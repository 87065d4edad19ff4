/**
 * The source of one generated function while it is written: its constants, its variables, its keys, and the room that it
 * needs. Runs on the JS thread; `generate.ts` and the files that write parts of the source call it.
 */

import {
  apply,
  isArray,
  isDate,
  isProxy,
  keysOf,
  mostOf,
  objectPrototype,
  prototypeOf,
  stringifyJson,
  valuesOf,
} from '../runtime/intrinsics.ts'
import { dateJson, dateToJSON } from './builtin-tojson.ts'
import { compile } from './compile.ts'
import type { Helpers, RoomNeed, Spot } from './learned.ts'
import type { PathEdge, PathNode } from './path-node.ts'
import { LONG_ROPE } from './strings.ts'
import type { Vocabulary } from './vocabulary.ts'

/** A property: its edge, and its name. */
export interface Property {
  readonly key: PathEdge
  readonly name: string
}

/** A container that encloses a value, in the source. */
interface Container {
  /** Variable that holds it. */
  readonly x: string
  /** Its key in the enclosing container; undefined for an element. */
  readonly name: string | undefined
  /** Variable of its index, where it has no key. */
  readonly index: string
}

/** Containers that enclose a value, outermost first. */
type Enclosing = readonly Container[]

/** Position of a value in the source. */
export interface Site extends Container {
  /** Undefined for an element. */
  readonly property: Property | undefined
  readonly node: PathNode
  readonly enclosing: Enclosing
  /** Whether it is a value that the function was called for. */
  readonly isTop: boolean
}

/** Returns the position of the values that the function is called for. */
export function topOf(node: PathNode, name: string | undefined): Site {
  return { x: 'x', name, index: 'index', property: undefined, node, enclosing: [], isTop: true }
}

/** Thrown when the lexicon is full, or the function would become too large. */
export class Full extends Error {}

/** Most words and doubles that a function writes between two checks of the room. */
const MOST_ROOM = 4096
/** Most characters of an element's rope, which is shorter than `LONG_ROPE` because it is joined to that. */
const LONG_PART = LONG_ROPE / 2

/** Source that hands the function's variables over to the context, and that takes them back. */
export const LEAVE = 'context.w = w; context.d = d; context.text = text + rope;'
export const TAKE = '({ w, d, words, doubles, text } = context); rope = "";'
export const ENTER: string = `context.reserve(NEED); ${TAKE}`
/** Source that makes room for words and doubles. */
export const LOOK_AT_ROOM: string = `
  if (w > context.wordLimit - NEED || d > context.doubleLimit - NEED) {
    ${LEAVE}
    ${ENTER}
  }`
/** Source that copies the rope once it is long. */
export const LOOK_AT_ROPE: string = `
  if (rope.length > ${LONG_PART}) {
    ${LEAVE} context.flushLong();
    ${ENTER}
  }`

export class FunctionSource {
  readonly #vocabulary: Vocabulary
  /** Variables of constants, and their values. */
  readonly #constants: string[] = []
  readonly #values: unknown[] = []
  readonly #frame: RoomNeed = { need: 0 }
  #variables = 0
  /** Words that the function may write between two checks of the room. */
  #words = 16
  /** Most containers that the function opens inside of each other. */
  levels = 0

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary
  }

  /** Makes the function. The source may name `NEED`, the helpers, and the built-ins below. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows what its source returns
  compile<T>(source: string, helpers: Helpers): T {
    if (MOST_ROOM < this.#words) throw new Full()
    this.#frame.need = this.#words
    const known = { ...BUILTINS, ...helpers }
    const make = compile<T>(
      keysOf(known).concat(this.#constants),
      `"use strict"; const NEED = ${this.#words}; return (${source})`,
    )
    return apply(make, undefined, valuesOf(known).concat(this.#values))
  }

  /** Returns a new variable. No two have the same number. */
  variable(noun: string): string {
    this.#variables += 1
    return noun + this.#variables
  }

  /** Returns the variable of a constant. */
  constant(noun: string, value: unknown): string {
    const name = this.variable(noun)
    this.#constants.push(name)
    this.#values.push(value)
    return name
  }

  /** Counts words and doubles that the function may write. */
  addWords(count: number): void {
    this.#words += count
  }

  /** Returns the word of JSON text. */
  word(text: string): number {
    const word = this.#vocabulary.word(text)
    if (word === undefined) throw new Full()
    return word
  }

  /** Returns the edge of a key, and links it as the walk would. */
  edge(node: PathNode, previous: PathEdge | undefined, name: string): PathEdge {
    const known = node.keys.get(name) ?? this.#vocabulary.learnNow(name)
    if (known.isUnknown) throw new Full()
    node.keys.set(name, known)
    if (previous === undefined) node.first ??= known
    else previous.next ??= known
    return known
  }

  /** Returns the containers that enclose the values inside of a site. */
  inside({ x, name, index, enclosing }: Site): Enclosing {
    const all = enclosing.concat({ x, name, index })
    this.levels = mostOf(this.levels, all.length)
    return all
  }

  /** Makes the arguments that say where `captureOther` and the like are: a constant, and the variables it refers to. */
  spot({ name, index, property, node, enclosing }: Site): string {
    const names = enclosing.map((outer) => outer.name)
    const spot: Spot = { frame: this.#frame, edge: property?.key ?? node.element, name, names }
    const variables = enclosing.flatMap((outer) => (outer.name === undefined ? [outer.x, outer.index] : outer.x))
    return [this.constant('spot', spot)].concat(variables, name === undefined ? index : []).join(', ')
  }
}

/** Makes a statement that writes the key of a property; nothing for an element. */
export function writeKey(property: Property | undefined): string {
  return property === undefined ? '' : `words[w++] = ${property.key.word} /* key */;`
}

/** Returns the JSON text before a value. */
export function prefix(property: Property | undefined): string {
  return property === undefined ? '' : `${stringifyJson(property.name)}:`
}

/** Returns a string literal: JSON text is one since ES2019. */
export function literal(text: string): string {
  return stringifyJson(text)
}

/** A key of a shape, linked to the next one. */
interface Link {
  readonly key: string | undefined
  readonly next: Link | undefined
}

const END_OF_KEYS: Link = { key: undefined, next: undefined }

/** Links the keys of a shape. */
export function chain(keys: readonly string[]): Link {
  return keys.toReversed().reduce<Link>((next, key) => ({ key, next }), END_OF_KEYS)
}

/** Whether `path` has no such value below `depth`. */
function isOff(path: readonly unknown[], depth: number, value: unknown): boolean {
  for (let index = 0; index < depth; index += 1) if (path[index] === value) return false
  return true
}

/** Functions that the source refers to, besides those of the walk. */
const BUILTINS = { isArray, isDate, isProxy, isOff, prototypeOf, objectPrototype, dateJson, dateToJSON, END_OF_KEYS }
