/**
 * A sketch says what the values at one node look like: counts, keys, a few constants. It keeps nothing of the values
 * themselves. `learning.ts` samples values on the JS thread; `generate.ts` makes code from the sketch.
 */

import {
  descriptorOf,
  isArray,
  isBoxed,
  isDate,
  isMap,
  isProxy,
  isTypedArray,
  keysOf,
  leastOf,
  prototypeOf,
  sliceString,
} from '../runtime/intrinsics.ts'
import { isLearnable } from './plain.ts'
import { isPlainPrototype } from './plain.ts'

const DEEPEST = 8
const MOST_VARIANTS = 8
const MOST_KEYS = 200
const MOST_TEXTS = 8
const LONGEST_TEXT = 40
const MOST_ELEMENTS = 16

/** A kind of objects: one prototype, the same keys in the same order. */
export interface Variant {
  readonly prototype: object
  readonly keys: readonly string[]
  readonly values: readonly Sketch[]
  count: number
}

/** A value to be counted, and the values that enclose it. */
interface SampledValue {
  readonly sketch: Sketch
  readonly value: unknown
  readonly outer: SampledValue | undefined
  readonly depth: number
}

/** Values of one sample, in the order in which they are counted. */
class Sample {
  readonly values: SampledValue[] = []
  readonly #most: number

  constructor(most: number) {
    this.#most = most
  }

  /** How many more values the sample may read. */
  get rest(): number {
    return this.#most - this.values.length
  }

  push(sketch: Sketch, value: unknown, outer: SampledValue | undefined): void {
    this.values.push({ sketch, value, outer, depth: outer === undefined ? 0 : outer.depth + 1 })
  }
}

function isEnclosed(outer: SampledValue | undefined, value: object): boolean {
  for (let sampled = outer; sampled !== undefined; sampled = sampled.outer) if (sampled.value === value) return true
  return false
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

  /**
   * Samples a value and its contents, breadth first, without running any code of the value. Returns how many values it
   * read, which is never more than `most`. It never enters an object inside of itself: the paths through objects that
   * refer to each other would fill any memory.
   */
  add(value: unknown, most: number): number {
    const sample = new Sample(most)
    sample.push(this, value, undefined)
    for (let at = 0; at < sample.values.length; at += 1) {
      const sampled = sample.values[at]
      if (sampled !== undefined) sampled.sketch.#count(sampled, sample)
    }
    return sample.values.length
  }

  #count(sampled: SampledValue, sample: Sample): void {
    const { value } = sampled
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
        else if (!isProxy(value) && !isEnclosed(sampled.outer, value)) this.#addObject(value, sampled, sample)
        break
      default:
    }
  }

  #addText(value: string): void {
    const text = sliceString(value, 0, LONGEST_TEXT + 1)
    if (this.texts.length < MOST_TEXTS && !this.texts.includes(text)) this.texts.push(text)
  }

  #addObject(value: object, sampled: SampledValue, sample: Sample): void {
    const isDeep = DEEPEST <= sampled.depth
    if (isArray(value)) {
      this.arrays += 1
      if (!isDeep) this.#addElements(value, sampled, sample)
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
      !isDeep
    ) {
      this.#addKeys(value, prototype, sampled, sample)
    }
  }

  #addElements(value: readonly unknown[], sampled: SampledValue, sample: Sample): void {
    this.elements ??= new Sketch()
    const end = leastOf(value.length, MOST_ELEMENTS, sample.rest)
    for (let index = 0; index < end; index += 1) {
      sample.push(this.elements, descriptorOf(value, index)?.value, sampled)
    }
  }

  #addKeys(value: object, prototype: object, sampled: SampledValue, sample: Sample): void {
    const keys = keysOf(value)
    if (sample.rest < keys.length) return
    const variant = this.#variant(keys, prototype)
    if (variant === undefined) return
    this.objects += 1
    variant.count += 1
    keys.forEach((key, index) => {
      const sketch = variant.values[index]
      if (sketch !== undefined) sample.push(sketch, descriptorOf(value, key)?.value, sampled)
    })
  }

  #variant(keys: readonly string[], prototype: object): Variant | undefined {
    const known = this.variants.find((variant) => variant.prototype === prototype && areSame(variant.keys, keys))
    if (known !== undefined) return known
    if (this.variants.length === MOST_VARIANTS || keys.length === 0 || MOST_KEYS < keys.length) return undefined
    // In source code `__proto__` would set the prototype.
    if (!keys.every((key) => key !== '__proto__' && isLearnable(key))) return undefined
    const variant = { prototype, keys, values: keys.map(() => new Sketch()), count: 0 }
    this.variants.push(variant)
    return variant
  }

  /** Variants that are frequent enough for code of their own. */
  get usualVariants(): readonly Variant[] {
    return this.variants
      .filter(({ count }) => this.count <= count * LEAST_SHARE)
      .toSorted((a, b) => b.count - a.count)
      .slice(0, MOST_USUAL)
  }

  get usualObjects(): number {
    return this.usualVariants.reduce((sum, { count }) => sum + count, 0)
  }

  /** Number of objects of usual variants, and of arrays that may become a loop. */
  get regulars(): number {
    return this.usualObjects + this.#loops
  }

  /** Whether the samples are alike enough for a loop in a generated function. */
  get isRegular(): boolean {
    const primitives = this.strings + this.numbers + this.booleans + this.nulls + this.undefineds
    const areUsual = this.objects === 0 || 0 < this.usualObjects
    return areUsual && primitives + this.dates + this.objects + this.#loops === this.count
  }

  get #loops(): number {
    return this.elements !== undefined && this.elements.isRegular ? this.arrays : 0
  }

  /** Number of properties in the samples, those of nested usual objects included. */
  get weight(): number {
    const own = this.usualVariants.flatMap(({ values }) => values)
    return own.reduce((sum, value) => sum + 1 + value.weight, this.elements?.weight ?? 0)
  }

  /** Strings of the samples, if they are always the same few. */
  get constants(): readonly string[] {
    const { texts } = this
    const areFew = FEWEST_FOR_CONSTANTS <= this.strings && texts.length <= MOST_CONSTANTS
    return areFew && texts.every((text) => text.length <= LONGEST_TEXT) ? texts : []
  }
}

/** A usual variant has at least one of so many objects. */
const LEAST_SHARE = 8
const MOST_USUAL = 4
const FEWEST_FOR_CONSTANTS = 8
const MOST_CONSTANTS = 4

function areSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((key, index) => key === b[index])
}
