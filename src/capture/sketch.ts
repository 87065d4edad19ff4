/** What the values at one place look like: counts, keys, a few constants; nothing of the values themselves is kept. */

import {
  descriptorOf,
  isArray,
  isBoxed,
  isDate,
  isMap,
  isProxy,
  isTypedArray,
  keysOf,
  prototypeOf,
  sliceString,
} from '../intrinsics.ts'
import { isLearnable } from './place.ts'
import { isPlainPrototype } from './plain.ts'

const DEEPEST = 8
const MOST_VARIANTS = 8
const MOST_KEYS = 200
const MOST_TEXTS = 8
const LONGEST_TEXT = 40
const MOST_ELEMENTS = 16

/** Objects of one prototype with the same keys in the same order. */
export interface Variant {
  readonly prototype: object
  readonly keys: readonly string[]
  readonly values: readonly Sketch[]
  count: number
}

export class Sketch {
  count = 0
  strings = 0
  numbers = 0
  ints = 0
  booleans = 0
  nulls = 0
  undefineds = 0
  dates = 0
  objects = 0
  arrays = 0
  readonly texts: string[] = []
  readonly variants: Variant[] = []
  elements: Sketch | undefined

  add(value: unknown, depth: number): void {
    this.count += 1
    switch (typeof value) {
      case 'string':
        this.strings += 1
        this.#addText(value)
        break
      case 'number':
        this.numbers += 1
        if ((value | 0) === value) this.ints += 1
        break
      case 'boolean':
        this.booleans += 1
        break
      case 'undefined':
        this.undefineds += 1
        break
      case 'object':
        if (value === null) this.nulls += 1
        else if (!isProxy(value)) this.#addObject(value, depth)
        break
      default:
    }
  }

  #addText(value: string): void {
    const text = sliceString(value, 0, LONGEST_TEXT + 1)
    if (this.texts.length < MOST_TEXTS && !this.texts.includes(text)) this.texts.push(text)
  }

  #addObject(value: object, depth: number): void {
    if (isArray(value)) {
      this.arrays += 1
      if (depth < DEEPEST) this.#addElements(value, depth)
      return
    }
    const prototype: object | null = prototypeOf(value)
    if (isDate(value)) this.dates += 1
    else if (
      prototype !== null &&
      isPlainPrototype(prototype) &&
      !isBoxed(value) &&
      !isMap(value) &&
      !isTypedArray(value) &&
      !('toJSON' in value) &&
      depth < DEEPEST
    ) {
      this.#addKeys(value, prototype, depth)
    }
  }

  #addElements(value: readonly unknown[], depth: number): void {
    this.elements ??= new Sketch()
    for (let index = 0; index < value.length && index < MOST_ELEMENTS; index += 1) {
      this.elements.add(descriptorOf(value, index)?.value, depth + 1)
    }
  }

  #addKeys(value: object, prototype: object, depth: number): void {
    const keys = keysOf(value)
    const variant = this.#variant(keys, prototype)
    if (variant === undefined) return
    this.objects += 1
    variant.count += 1
    keys.forEach((key, index) => variant.values[index]?.add(descriptorOf(value, key)?.value, depth + 1))
  }

  #variant(keys: readonly string[], prototype: object): Variant | undefined {
    const known = this.variants.find((variant) => variant.prototype === prototype && areSame(variant.keys, keys))
    if (known !== undefined) return known
    if (this.variants.length === MOST_VARIANTS || keys.length === 0 || MOST_KEYS < keys.length) return undefined
    // In source code that key would be the prototype.
    if (!keys.every((key) => key !== '__proto__' && isLearnable(key))) return undefined
    const variant = { prototype, keys, values: keys.map(() => new Sketch()), count: 0 }
    this.variants.push(variant)
    return variant
  }

  /** Those worth code of their own. */
  get usualVariants(): readonly Variant[] {
    return this.variants
      .filter(({ count }) => this.count <= count * LEAST_SHARE)
      .toSorted((a, b) => b.count - a.count)
      .slice(0, MOST_USUAL)
  }

  get usualObjects(): number {
    return this.usualVariants.reduce((sum, { count }) => sum + count, 0)
  }

  /** Objects of the usual kinds, and arrays that may become a loop. */
  get regulars(): number {
    return this.usualObjects + this.#loops
  }

  /** What is known here is worth a loop of a generated function. */
  get isRegular(): boolean {
    const primitives = this.strings + this.numbers + this.booleans + this.nulls + this.undefineds
    const areUsual = this.objects === 0 || 0 < this.usualObjects
    return areUsual && primitives + this.dates + this.objects + this.#loops === this.count
  }

  get #loops(): number {
    return this.elements !== undefined && this.elements.isRegular ? this.arrays : 0
  }

  /** How many properties there are in it, the usual objects in it counted. */
  get weight(): number {
    const own = this.usualVariants.flatMap(({ values }) => values)
    return own.reduce((sum, value) => sum + 1 + value.weight, this.elements?.weight ?? 0)
  }

  /** The strings here, if they are always the same few. */
  get constants(): readonly string[] {
    const { texts } = this
    const areFew = FEWEST_FOR_CONSTANTS <= this.strings && texts.length <= MOST_CONSTANTS
    return areFew && texts.every((text) => text.length <= LONGEST_TEXT) ? texts : []
  }
}

/** One of so many objects at least is of a usual variant. */
const LEAST_SHARE = 8
const MOST_USUAL = 4
const FEWEST_FOR_CONSTANTS = 8
const MOST_CONSTANTS = 4

function areSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((key, index) => key === b[index])
}
