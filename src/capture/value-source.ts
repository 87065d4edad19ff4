/**
 * Writes the source that captures one value: a branch for each kind that the samples have, and a call of the walk for
 * all others. Runs on the JS thread; `generate.ts` calls it.
 */

import { ContainerSource } from './container-source.ts'
import { TAKE, writeKey, type FunctionSource, type Site } from './function-source.ts'
import { DATE, NULL } from './opcodes.ts'
import type { PathNode } from './path-node.ts'
import { booleanSource, nullSource, numberSource, stringSource } from './primitive-source.ts'
import type { Sketch } from './sketch.ts'

/** What a function is generated for. */
export interface ValueScope {
  /** Whether the function is for objects. */
  readonly isObject: boolean
  /** Number of properties in the samples. */
  readonly weight: number
  /** Generates a function for the objects of a node, which becomes a part of this one. */
  readonly generatePart: (sketch: Sketch, node: PathNode) => void
}

/** Properties above which a function is split: V8 does not optimise functions of more than 60 KB of bytecode. */
const MOST_PROPERTIES = 120
/** Properties above which a part of a split function becomes a function of its own. */
const MOST_OF_PART = 16

/** Source that gives up when more than a quarter of the elements have other shapes. */
const MISS = `
  if (++context.missed > 2 + ((index - start) >> 2)) {
    context.w = w; context.d = d; context.text = text; return index + 1;
  }`

/** Statements that leave a value to the walk. */
interface Fallbacks {
  /** For an object whose `toJSON` was read. */
  readonly read: string
  /** For the answer of a date's `toJSON`. */
  readonly answer: string
}

export class ValueSource {
  readonly #source: FunctionSource
  readonly #scope: ValueScope
  readonly #containers: ContainerSource

  constructor(source: FunctionSource, scope: ValueScope) {
    this.#source = source
    this.#scope = scope
    this.#containers = new ContainerSource(source, scope.isObject, (sketch, site) => this.value(sketch, site))
  }

  /** Makes statements that capture the value. */
  value(sketch: Sketch, site: Site): string {
    const { x, property, isTop } = site
    this.#source.addWords(4)
    const at = `context, w, d, text + rope, ${this.#source.spot(site)}`
    const goOn = `\n${TAKE}${isTop ? MISS : ''}`
    const other = `captureOther(${x}, ${at});${goOn}`
    const read = `captureRead(${x}, toJSON, ${at});${goOn}`
    const answer = `captureAnswer(${at});${goOn}`
    const branches = [
      {
        count: sketch.strings,
        test: `typeof ${x} === "string"`,
        body: () => stringSource(this.#source, sketch, site, other),
      },
      { count: sketch.numbers, test: `typeof ${x} === "number"`, body: () => numberSource(site) },
      { count: sketch.booleans, test: `typeof ${x} === "boolean"`, body: () => booleanSource(this.#source, site) },
      {
        count: sketch.undefineds,
        test: `${x} === undefined`,
        body: () => (property === undefined ? `words[w++] = ${NULL} /* null */;` : ''),
      },
      { count: sketch.nulls, test: `${x} === null`, body: () => nullSource(this.#source, site) },
      {
        count: sketch.objects + sketch.arrays + sketch.dates,
        test: `typeof ${x} === "object" && ${x} !== null && !isProxy(${x})`,
        body: () => this.#readObject(sketch, site, { read, answer }),
      },
    ]
    const used = branches.filter(({ count }) => 0 < count).toSorted((a, b) => b.count - a.count)
    const tests = used.map(({ test, body }) => `if (${test}) {\n${body()}\n} else `)
    return `${tests.join('')}{\n${other}\n}`
  }

  /**
   * Makes the statements for an object that is not a proxy. Its `toJSON` is read first, as JSON.stringify does; V8
   * knows the object's shape from there on.
   */
  #readObject(sketch: Sketch, site: Site, { read, answer }: Fallbacks): string {
    const { x, property } = site
    const plain = this.object(sketch, site, read)
    const time = sketch.dates === 0 ? '' : this.#source.variable('time')
    const date = `
      if (toJSON === dateToJSON && isDate(${x})) {
        const ${time} = dateJson(context, ${x});
        if (${time} === undefined) {
          ${answer}
        } else {
          ${writeKey(property)} words[w++] = ${DATE} /* date */; doubles[d++] = ${time};
        }
      } else {
        ${read}
      }`
    return `
      const toJSON = ${x}.toJSON;
      if (typeof toJSON === "function") {
        ${sketch.dates === 0 ? read : date}
      } else ${plain}`
  }

  /** Makes the statements for an object that is not a proxy and has no `toJSON`. `other` captures unknown shapes. */
  object(sketch: Sketch, site: Site, other: string): string {
    const containers = this.#containers
    const isNew = containers.isNew(site)
    const branches: string[] = []
    const elements = 0 < sketch.arrays ? this.#array(sketch, site, other) : undefined
    if (elements !== undefined) branches.push(`if (isArray(${site.x}) && ${isNew}) {\n${elements}\n}`)
    const variants = sketch.usualVariants
    if (this.#isPart(sketch, site.isTop)) this.#scope.generatePart(sketch, site.node)
    else if (0 < variants.length) {
      const block = containers.objectSource(variants, site, other)
      branches.push(`if (${containers.isOfPrototype(variants, site)} && ${isNew}) {\n${block}\n}`)
    }
    return branches.concat(`{\n${other}\n}`).join(' else ')
  }

  /** Makes the statements for an array. Returns undefined if the elements have too little in common. */
  #array({ elements }: Sketch, site: Site, read: string): string | undefined {
    // Arrays of large elements are left to the walk, which learns from them.
    if (elements === undefined || !elements.isRegular || this.#isPart(elements, false)) return undefined
    if (elements.count === 0) return this.#containers.emptyArraySource(site, read)
    return this.#containers.arraySource(elements, site)
  }

  /** Whether the object gets a function of its own. */
  #isPart({ weight }: Sketch, isTop: boolean): boolean {
    return MOST_PROPERTIES < this.#scope.weight && !isTop && MOST_OF_PART < weight
  }
}
