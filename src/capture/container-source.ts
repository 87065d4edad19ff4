/**
 * Writes the source that captures objects of usual shapes, and arrays. Runs on the JS thread; `value-source.ts` calls it
 * and passes the function that writes the source of the values inside.
 */

import { objectPrototype } from '../runtime/intrinsics.ts'
import {
  chain,
  ENTER,
  LEAVE,
  literal,
  LOOK_AT_ROOM,
  LOOK_AT_ROPE,
  prefix,
  writeKey,
  type FunctionSource,
  type Site,
} from './function-source.ts'
import { CLOSE_ARRAY, CLOSE_OBJECT, OPEN_ARRAY, OPEN_OBJECT } from './opcodes.ts'
import type { PathEdge } from './path-node.ts'
import { makeLoops } from './runs.ts'
import type { Sketch, Variant } from './sketch.ts'

/** Makes the statements that capture one value. */
export type WriteValue = (sketch: Sketch, site: Site) => string

/** Least length of an array of numbers that is copied as a run. */
const LEAST_RUN = 24
/** Properties between two checks of the rope's length. */
const STRINGS_PER_LOOK = 32

export class ContainerSource {
  readonly #source: FunctionSource
  /** Whether the function is for objects. */
  readonly #isObject: boolean
  readonly #writeValue: WriteValue

  constructor(source: FunctionSource, isObject: boolean, writeValue: WriteValue) {
    this.#source = source
    this.#isObject = isObject
    this.#writeValue = writeValue
  }

  /** Makes the condition under which a container is not inside of itself. */
  isNew({ x, enclosing }: Site): string {
    return enclosing
      .map((outer) => `${x} !== ${outer.x}`)
      .concat(`${x} !== parent`, `(depth < 2 || isOff(path, depth - 1, ${x}))`)
      .join(' && ')
  }

  /** Makes the condition under which an object has the prototype of a variant. */
  isOfPrototype(variants: readonly Variant[], { x }: Site): string {
    const all = variants.map(({ prototype }) => prototype)
    const prototypes = all.filter((prototype, index) => all.indexOf(prototype) === index)
    const tests = prototypes.map((prototype) => `prototypeOf(${x}) === ${this.#prototype(prototype)}`)
    return tests.length === 1 ? tests.join('') : `(${tests.join(' || ')})`
  }

  #prototype(prototype: object): string {
    return prototype === objectPrototype ? 'objectPrototype' : this.#source.constant('prototype', prototype)
  }

  /** Makes the statements that capture an object of one of the variants, and `other` for one of none. */
  objectSource(variants: readonly Variant[], site: Site, other: string): string {
    const blocks = variants.map((variant) => this.#variant(variant, site))
    return blocks.reduceRight((otherwise, make) => make(otherwise), other)
  }

  /** Makes the statements that capture an object with these keys, before those of `otherwise`. */
  #variant({ keys, values }: Variant, site: Site): (otherwise: string) => string {
    const { x, property, node } = site
    const enclosing = this.#source.inside(site)
    const open =
      property === undefined ? `${OPEN_OBJECT} /* { */` : `${this.#source.word(`${prefix(property)}{`)} /* key, { */`
    let previous: PathEdge | undefined
    const properties = keys.map((name, index) => {
      const key = this.#source.edge(node, previous, name)
      previous = key
      const y = this.#source.variable('x')
      const sketch = values[index]
      if (sketch === undefined) return ''
      const inner: Site = { x: y, name, index: '', property: { key, name }, node: key.node, enclosing, isTop: false }
      const body = this.#writeValue(sketch, inner)
      const look = 0 < index && index % STRINGS_PER_LOOK === 0 ? LOOK_AT_ROPE : ''
      return `${look}
        const ${y} = ${x}[${literal(name)}];
        ${body}`
    })
    this.#source.addWords(4)
    const [guard, isOne] = this.#keyGuard(keys, site)
    return (otherwise) => `
      ${guard}
      if (${isOne}) {
        ${LOOK_AT_ROPE}
        words[w++] = ${open};
        ${properties.join('\n')}
        words[w++] = ${CLOSE_OBJECT} /* } */;
      } else {
        ${otherwise}
      }`
  }

  /** Makes the source that compares the keys of the value with these, and the condition under which they are equal. */
  #keyGuard(keys: readonly string[], { x, isTop }: Site): readonly [guard: string, isOne: string] {
    const next = this.#source.variable('next')
    const loop = `
      for (const key in ${x}) {
        if (${next}.key !== key) { ${next} = undefined; break; }
        ${next} = ${next}.next;
      }`
    const begin = `let ${next} = ${this.#source.constant('keys', chain(keys))};`
    const isOne = `${next} === END_OF_KEYS`
    if (!isTop || !this.#isObject) return [`${begin}${loop}`, isOne]
    // An object may have many keys: first check that it has the last one.
    const hasLast = `${literal(keys[keys.length - 1] ?? '')} in ${x}`
    return [`${begin}\nif (${hasLast}) {${loop}\n} else ${next} = undefined;`, isOne]
  }

  /** Makes the statements for an array whose samples had no elements. */
  emptyArraySource({ x, property }: Site, read: string): string {
    return `
      if (${x}.length === 0) words[w++] = ${this.#source.word(`${prefix(property)}[],`)} /* key, [] */;
      else {
        ${read}
      }`
  }

  /** Makes the statements for an array whose `toJSON` is not a function. */
  arraySource(elements: Sketch, site: Site): string {
    const { x, property, node } = site
    const length = this.#source.variable('length')
    const enclosing = this.#source.inside(site)
    const index = this.#source.variable('index')
    const y = this.#source.variable('x')
    const element: Site = { x: y, name: undefined, index, property: undefined, node, enclosing, isTop: false }
    const loop = `
      for (let ${index} = 0; ${index} < ${length}; ${index}++) {
        ${LOOK_AT_ROPE}
        ${LOOK_AT_ROOM}
        const ${y} = ${x}[${index}];
        ${this.#writeValue(elements, element)}
      }`
    return `
      ${writeKey(property)}
      const ${length} = ${x}.length;
      words[w++] = ${OPEN_ARRAY} /* [ */;
      ${elements.numbers < elements.count ? loop : this.#numbersSource(elements, { ...element, name: '' }, { loop, length, x })}
      words[w++] = ${CLOSE_ARRAY} /* ] */;`
  }

  /** Makes the statements for the elements of a number array: a run if it is long. */
  #numbersSource({ ints, count }: Sketch, element: Site, { loop, length, x }: NumberArray): string {
    const loops = this.#source.constant('loops', makeLoops(ints === count))
    return `
      if (${length} < ${LEAST_RUN}) {${loop}
      } else {
        ${LEAVE} context.at = 0;
        context.at = captureNumbers(context, ${x}, ${length}, ${loops});
        if (context.at < ${length}) captureRest(${x}, ${length}, context, ${this.#source.spot(element)});
        ${ENTER}
      }`
  }
}

/** A number array in the source: the loop for a short one, and the variables of its length and of itself. */
interface NumberArray {
  readonly loop: string
  readonly length: string
  readonly x: string
}
