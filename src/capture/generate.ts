/**
 * Generates one function for each path node whose values look alike, on the JS thread; `fast-walk.ts` calls it. By its
 * keys, before anything else is read, the function finds out whether an object is of a shape it knows; then it reads
 * the values in order. Every load in it has seen objects of one shape only, which no load of a general walk has.
 * User text enters the source only as literals made by JSON.stringify.
 */

import { compile } from './compile.ts'
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
import type { PathEdge, PathNode } from './path-node.ts'
import type { Sketch, Variant } from './sketch.ts'
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  DATE,
  DOUBLE,
  FALSE,
  MOST_INT,
  NULL,
  OPEN_ARRAY,
  OPEN_OBJECT,
  ROPE,
  TRUE,
} from './opcodes.ts'
import type { CaptureContext as Tape } from './context.ts'
import { LONG_ROPE, SHORT_STRING } from './strings.ts'
import { makeLoops } from './runs.ts'
import type { Vocabulary } from './vocabulary.ts'

/** Captures elements from `start` to `end`. Returns `end`, or the index where it gave up. */
export type CaptureElements = (tape: Tape, value: readonly unknown[], start: number, end: number) => number

/**
 * Captures an object that is not a proxy and whose `toJSON` was read. Returns false, with nothing of it read, if it has
 * other keys.
 */
export type CaptureObject = (tape: Tape, value: object) => boolean

/** A generated function, for the elements of arrays or for objects. */
export type Learned = LearnedElements | LearnedObject

interface LearnedElements {
  readonly isObject: false
  readonly capture: CaptureElements
  /** Most containers that it opens inside of each other. It does not check how deep they are. */
  readonly levels: number
}

interface LearnedObject {
  readonly isObject: true
  readonly capture: CaptureObject
  readonly levels: number
}

/** Functions of the walk that take over where generated code does not know a value. */
export type Helpers = Readonly<
  Record<'captureAnswer' | 'captureNumbers' | 'captureOther' | 'captureRead' | 'captureRest', unknown>
>

/** Least share of samples that are objects of usual kinds, or arrays of such. With less, nothing is generated. */
const LEAST_REGULAR = 0.8
/** Least length of an array of numbers that is copied as a run. */
const LEAST_RUN = 24
/** Most characters of an element's rope, which is shorter than `LONG_ROPE` because it is joined to that. */
const LONG_PART = LONG_ROPE / 2

/** A property: its edge, and its name. */
interface Property {
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

/** Words that a generated function needs room for when it goes on. */
interface RoomNeed {
  need: number
}

/** Position of a value that a generated function leaves to the walk. */
export interface Spot {
  readonly frame: Readonly<RoomNeed>
  readonly edge: PathEdge
  /** Name of the value; undefined where the caller passes an index. */
  readonly name: string | undefined
  /** Names of the enclosing containers; undefined where the caller passes an index. */
  readonly names: readonly (string | undefined)[]
}

/** Position of a value in the source. */
interface Site extends Container {
  /** Undefined for an element. */
  readonly property: Property | undefined
  readonly node: PathNode
  readonly enclosing: Enclosing
  /** Whether it is a value that the function was called for. */
  readonly isTop: boolean
}

/** Thrown when the lexicon is full, or the function would become too large. */
class Full extends Error {}

/** Most words and doubles that a function writes between two checks of the room. */
const MOST_ROOM = 4096
/** Properties above which a function is split: V8 does not optimise functions of more than 60 KB of bytecode. */
const MOST_PROPERTIES = 120
/** Properties above which a part of a split function becomes a function of its own. */
const MOST_OF_PART = 16
/** Properties between two checks of the rope's length. */
const STRINGS_PER_LOOK = 32

/**
 * Generates a function for elements. Returns undefined if they have too little in common, or code may not be generated.
 */
export function generateElements(
  vocabulary: Vocabulary,
  sketch: Sketch,
  node: PathNode,
  helpers: Helpers,
): Learned | undefined {
  if (sketch.regulars < sketch.count * LEAST_REGULAR) return undefined
  return attempt(() => new Generator(vocabulary, sketch, helpers, false).elements(sketch, node))
}

/** Generates a function for objects. Returns undefined as `generateElements` does. */
export function generateObject(
  vocabulary: Vocabulary,
  sketch: Sketch,
  node: PathNode,
  helpers: Helpers,
): Learned | undefined {
  if (sketch.objects === 0 || sketch.usualObjects < sketch.objects * LEAST_REGULAR) return undefined
  return attempt(() => new Generator(vocabulary, sketch, helpers, true).object(sketch, node))
}

function attempt<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch (error) {
    if (error instanceof Full || error instanceof EvalError) return undefined
    throw error
  }
}

/** Source that hands the function's variables over to the tape, and that takes them back. */
const LEAVE = 'T.w = p; T.d = q; T.text = R + r;'
const TAKE = 'p = T.w; q = T.d; W = T.words; F = T.doubles; R = T.text; r = "";'
const ENTER = `T.reserve(NEED); ${TAKE}`
/** Source that gives up when more than a quarter of the elements have other shapes. */
const MISS = 'if (++T.missed > 2 + ((i - start) >> 2)) { T.w = p; T.d = q; T.text = R; return i + 1; }'
const LOOK_AT_ROOM = `if (p > T.wordLimit - NEED || q > T.doubleLimit - NEED) { ${LEAVE} ${ENTER} }`
const LOOK_AT_ROPE = `if (r.length > ${LONG_PART}) { ${LEAVE} T.flushLong(); ${ENTER} }`

class Generator {
  readonly #vocabulary: Vocabulary
  readonly #helpers: Helpers
  readonly #isObject: boolean
  readonly #isLarge: boolean
  readonly #constants: unknown[] = []
  #variables = 0
  /** Words that the function may write between two checks of the room. */
  #words = 16
  readonly #frame: RoomNeed = { need: 0 }
  #levels = 0

  constructor(vocabulary: Vocabulary, { weight }: Sketch, helpers: Helpers, isObject: boolean) {
    this.#vocabulary = vocabulary
    this.#helpers = helpers
    this.#isObject = isObject
    this.#isLarge = MOST_PROPERTIES < weight
  }

  elements(sketch: Sketch, node: PathNode): LearnedElements {
    const body = this.#value(sketch, topOf(node, undefined))
    const capture = this.#compile<CaptureElements>(`function capture(T, v, i, n) {
        let p, q, W, F, R, r;
        const A = T.path, D = T.depth, B = D === 0 ? undefined : A[D - 1], start = i;
        T.missed = 0;
        ${ENTER}
        for (; i < n; i++) {
          ${LOOK_AT_ROOM}
          const e = v[i];
          ${body}
          if (r !== "") {
            R += r;
            r = "";
            if (R.length > ${LONG_ROPE}) { ${LEAVE} T.flushLong(); ${ENTER} }
          }
        }
        T.w = p; T.d = q; T.text = R;
        return i;
      }`)
    return { isObject: false, capture, levels: this.#levels }
  }

  object(sketch: Sketch, node: PathNode): LearnedObject {
    const body = this.#objects(sketch, topOf(node, ''), 'return false;')
    const capture = this.#compile<CaptureObject>(`function capture(T, e) {
        let p, q, W, F, R, r;
        const A = T.path, D = T.depth, B = D === 0 ? undefined : A[D - 1];
        ${ENTER}
        ${body}
        ${LEAVE}
        if (T.text.length > ${LONG_ROPE}) T.flushLong();
        return true;
      }`)
    return { isObject: true, capture, levels: this.#levels }
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows what its source returns
  #compile<T>(source: string): T {
    if (MOST_ROOM < this.#words) throw new Full()
    this.#frame.need = this.#words
    const known = { ...BUILTINS, ...this.#helpers }
    const names = keysOf(known).concat(this.#constants.map((_, index) => `C${index}`))
    const make = compile<T>(names, `"use strict"; const NEED = ${this.#words}; return (${source})`)
    return apply(make, undefined, valuesOf(known).concat(this.#constants))
  }

  #constant(value: unknown): string {
    this.#constants.push(value)
    return `C${this.#constants.length - 1}`
  }

  #variable(letter: string): string {
    this.#variables += 1
    return letter + this.#variables
  }

  /** Returns the word of JSON text. */
  #word(text: string): number {
    const word = this.#vocabulary.word(text)
    if (word === undefined) throw new Full()
    return word
  }

  /** Makes statements that capture the value. */
  #value(sketch: Sketch, site: Site): string {
    const { x, property, isTop } = site
    this.#words += 4
    const miss = isTop ? MISS : ''
    const at = `T, p, q, R + r, ${this.#spot(site)}`
    const other = `{ captureOther(${x}, ${at}); ${TAKE} ${miss} }`
    const read = `{ captureRead(${x}, t, ${at}); ${TAKE} ${miss} }`
    const answer = `{ captureAnswer(${at}); ${TAKE} ${miss} }`
    const branches = [
      { count: sketch.strings, test: `typeof ${x} === "string"`, body: () => this.#string(sketch, x, property, other) },
      { count: sketch.numbers, test: `typeof ${x} === "number"`, body: () => number(x, property) },
      { count: sketch.booleans, test: `typeof ${x} === "boolean"`, body: () => this.#boolean(x, property) },
      {
        count: sketch.undefineds,
        test: `${x} === undefined`,
        body: () => (property === undefined ? `W[p++] = ${NULL};` : ''),
      },
      { count: sketch.nulls, test: `${x} === null`, body: () => this.#null(property) },
      {
        count: sketch.objects + sketch.arrays + sketch.dates,
        test: `typeof ${x} === "object" && ${x} !== null && !isProxy(${x})`,
        body: () => this.#object(sketch, site, read, answer),
      },
    ]
    const used = branches.filter(({ count }) => 0 < count).toSorted((a, b) => b.count - a.count)
    return used.map(({ test, body }) => `if (${test}) { ${body()} } else `).join('') + other
  }

  /** Makes the arguments that say where `captureOther` and the like are: a constant, and the variables it refers to. */
  #spot({ name, index, property, node, enclosing }: Site): string {
    const names = enclosing.map((outer) => outer.name)
    const spot: Spot = { frame: this.#frame, edge: property?.key ?? node.element, name, names }
    const variables = enclosing.flatMap((outer) => (outer.name === undefined ? [outer.x, outer.index] : outer.x))
    return [this.#constant(spot)].concat(variables, name === undefined ? index : []).join(', ')
  }

  #string(sketch: Sketch, x: string, property: Property | undefined, other: string): string {
    const n = this.#variable('n')
    const constants = sketch.constants.map((text) => {
      const json = stringifyJson(text)
      return `if (${x} === ${literal(text)}) W[p++] = ${this.#word(`${prefix(property)}${json},`)}; else `
    })
    const short = `{ ${keyWord(property)} W[p++] = ${n} << 4 | ${ROPE}; r += ${x}; }`
    const middling = `{ const w = T.middling(${x}, ${n}); if (w < 0) ${other} else { ${keyWord(property)} W[p++] = w; } }`
    return `${constants.join('')}{ const ${n} = ${x}.length; if (${n} <= ${SHORT_STRING}) ${short} else ${middling} }`
  }

  #boolean(x: string, property: Property | undefined): string {
    if (property === undefined) return `W[p++] = ${x} ? ${TRUE} : ${FALSE};`
    return `W[p++] = ${x} ? ${this.#word(`${prefix(property)}true,`)} : ${this.#word(`${prefix(property)}false,`)};`
  }

  #null(property: Property | undefined): string {
    return `W[p++] = ${property === undefined ? NULL : this.#word(`${prefix(property)}null,`)};`
  }

  /**
   * Makes the statements for an object that is not a proxy. Its `toJSON` is read first, as JSON.stringify does; V8
   * knows the object's shape from there on.
   */
  #object(sketch: Sketch, site: Site, read: string, answer: string): string {
    const { x, property } = site
    const plain = this.#objects(sketch, site, read)
    if (sketch.dates === 0) return `const t = ${x}.toJSON; if (typeof t === "function") ${read} else ${plain}`
    const m = this.#variable('m')
    const date = `const ${m} = dateJson(T, ${x}); if (${m} !== undefined) { ${keyWord(property)} W[p++] = ${DATE}; F[q++] = ${m}; } else ${answer}`
    return `const t = ${x}.toJSON; if (typeof t === "function") { if (t === dateToJSON && isDate(${x})) { ${date} } else ${read} } else ${plain}`
  }

  /** Makes the statements for an object that is not a proxy and has no `toJSON`. `other` captures unknown shapes. */
  #objects(sketch: Sketch, site: Site, other: string): string {
    const { x, node, enclosing, isTop } = site
    const isNew = enclosing
      .map((outer) => `${x} !== ${outer.x}`)
      .concat(`${x} !== B`, `(D < 2 || isOff(A, D - 1, ${x}))`)
      .join(' && ')
    const branches: string[] = []
    const elements = 0 < sketch.arrays ? this.#elements(sketch, site, other) : undefined
    if (elements !== undefined) branches.push(`if (isArray(${x}) && ${isNew}) { ${elements} }`)
    const variants = sketch.usualVariants
    if (this.#isPart(sketch, isTop)) this.#generatePart(sketch, node)
    else if (0 < variants.length) {
      const blocks = variants.map((variant) => this.#variant(variant, site))
      const block = blocks.reduceRight((otherwise, make) => make(otherwise), other)
      branches.push(`if ((${this.#isOfPrototype(variants, x)}) && ${isNew}) { ${block} }`)
    }
    return branches.concat(other).join(' else ')
  }

  #generatePart(sketch: Sketch, node: PathNode): void {
    const learned = generateObject(this.#vocabulary, sketch, node, this.#helpers)
    if (learned !== undefined) node.learnPart(learned)
  }

  /** Whether the object gets a function of its own. */
  #isPart({ weight }: Sketch, isTop: boolean): boolean {
    return this.#isLarge && !isTop && MOST_OF_PART < weight
  }

  #isOfPrototype(variants: readonly Variant[], x: string): string {
    const all = variants.map(({ prototype }) => prototype)
    const prototypes = all.filter((prototype, index) => all.indexOf(prototype) === index)
    return prototypes.map((prototype) => `prototypeOf(${x}) === ${this.#prototype(prototype)}`).join(' || ')
  }

  /** Makes the source that compares the keys of the value with these, and the condition under which they are equal. */
  #keyGuard(keys: readonly string[], { x, isTop }: Site): readonly [guard: string, isOne: string] {
    const g = this.#variable('g')
    const loop = `for (const k in ${x}) { if (${g}.key !== k) { ${g} = undefined; break; } ${g} = ${g}.next; }`
    const begin = `let ${g} = ${this.#constant(chain(keys))};`
    const isOne = `${g} === END`
    if (!isTop || !this.#isObject) return [`${begin} ${loop}`, isOne]
    // An object may have many keys: first check that it has the last one.
    return [`${begin} if (${literal(keys[keys.length - 1] ?? '')} in ${x}) { ${loop} } else ${g} = undefined;`, isOne]
  }

  #prototype(prototype: object): string {
    return prototype === objectPrototype ? 'objectPrototype' : this.#constant(prototype)
  }

  /** Makes the statements that capture an object with these keys, before those of `otherwise`. */
  #variant({ keys, values }: Variant, site: Site): (otherwise: string) => string {
    const { x, property, node } = site
    const enclosing = this.#inside(site)
    const open = property === undefined ? OPEN_OBJECT : this.#word(`${prefix(property)}{`)
    let previous: PathEdge | undefined
    const properties = keys.map((k, index) => {
      const key = this.#key(node, previous, k)
      previous = key
      const y = this.#variable('x')
      const sketch = values[index]
      if (sketch === undefined) return ''
      const own = { key, name: k }
      const inner: Site = { x: y, name: k, index: '', property: own, node: key.node, enclosing, isTop: false }
      const body = this.#value(sketch, inner)
      const look = 0 < index && index % STRINGS_PER_LOOK === 0 ? LOOK_AT_ROPE : ''
      return `${look} const ${y} = ${x}[${literal(k)}]; ${body}`
    })
    this.#words += 4
    const guard = this.#keyGuard(keys, site)
    const body = `${LOOK_AT_ROPE} W[p++] = ${open}; ${properties.join('\n')} W[p++] = ${CLOSE_OBJECT};`
    return (otherwise) => `{ ${guard[0]} if (${guard[1]}) { ${body} } else ${otherwise} }`
  }

  /** Returns the containers that enclose the values inside of a site. */
  #inside({ x, name, index, enclosing }: Site): Enclosing {
    const all = enclosing.concat({ x, name, index })
    this.#levels = mostOf(this.#levels, all.length)
    return all
  }

  /** Returns the edge of a key, and links it as the walk would. */
  #key(node: PathNode, previous: PathEdge | undefined, name: string): PathEdge {
    const known = node.keys.get(name) ?? this.#vocabulary.learnNow(name)
    if (known.isUnknown) throw new Full()
    node.keys.set(name, known)
    if (previous === undefined) node.first ??= known
    else previous.next ??= known
    return known
  }

  /**
   * Makes the statements for an array whose `toJSON` is not a function. Returns undefined if the elements have too
   * little in common.
   */
  #elements({ elements }: Sketch, site: Site, read: string): string | undefined {
    // Arrays of large elements are left to the walk, which learns from them.
    if (elements === undefined || !elements.isRegular || this.#isPart(elements, false)) return undefined
    const { x, property, node } = site
    const all = elements.count
    if (all === 0) return `if (${x}.length === 0) W[p++] = ${this.#word(`${prefix(property)}[],`)}; else ${read}`
    const n = this.#variable('n')
    const enclosing = this.#inside(site)
    const begin = `${keyWord(property)} const ${n} = ${x}.length; W[p++] = ${OPEN_ARRAY};`
    const end = `W[p++] = ${CLOSE_ARRAY};`
    const j = this.#variable('j')
    const y = this.#variable('e')
    const room = `${LOOK_AT_ROPE} ${LOOK_AT_ROOM}`
    const element: Site = { x: y, name: undefined, index: j, property: undefined, node, enclosing, isTop: false }
    const body = this.#value(elements, element)
    const loop = `for (let ${j} = 0; ${j} < ${n}; ${j}++) { ${room} const ${y} = ${x}[${j}]; ${body} }`
    if (elements.numbers < all) return `${begin} ${loop} ${end}`
    const loops = this.#constant(makeLoops(elements.ints === all))
    const rest = `if (T.at < ${n}) captureRest(${x}, ${n}, T, ${this.#spot({ ...element, name: '' })});`
    const run = `${LEAVE} T.at = 0; T.at = captureNumbers(T, ${x}, ${n}, ${loops}); ${rest} ${ENTER}`
    return `${begin} if (${n} < ${LEAST_RUN}) { ${loop} } else { ${run} } ${end}`
  }
}

function topOf(node: PathNode, name: string | undefined): Site {
  return { x: 'e', name, index: 'i', property: undefined, node, enclosing: [], isTop: true }
}

function number(x: string, property: Property | undefined): string {
  const fits = `${x} === (${x} | 0) && ${x} < ${MOST_INT} && ${x} >= -${MOST_INT}`
  return `${keyWord(property)} if (${fits}) W[p++] = (${x} | 0) << 4; else { F[q++] = ${x}; W[p++] = ${DOUBLE}; }`
}

function keyWord(property: Property | undefined): string {
  return property === undefined ? '' : `W[p++] = ${property.key.word};`
}

/** Returns the JSON text before a value. */
function prefix(property: Property | undefined): string {
  return property === undefined ? '' : `${stringifyJson(property.name)}:`
}

/** Returns a string literal: JSON text is one since ES2019. */
function literal(text: string): string {
  return stringifyJson(text)
}

/** A key of a shape, linked to the next one. */
interface Link {
  readonly key: string | undefined
  readonly next: Link | undefined
}

const END: Link = { key: undefined, next: undefined }

function chain(keys: readonly string[]): Link {
  return keys.toReversed().reduce<Link>((next, key) => ({ key, next }), END)
}

/** Whether `path` has no such value below `depth`. */
function isOff(path: readonly unknown[], depth: number, value: unknown): boolean {
  for (let index = 0; index < depth; index += 1) if (path[index] === value) return false
  return true
}

/** Functions that the source refers to, besides those of the walk. */
const BUILTINS = {
  isArray,
  isDate,
  isProxy,
  isOff,
  prototypeOf,
  objectPrototype,
  dateJson,
  dateToJSON,
  END,
}
