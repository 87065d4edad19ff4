/**
 * One function for each place of values that look alike: it tells by its keys, before anything else is read, whether
 * an object is one of those it was made for, and then reads them one after the other. Every load in it has seen objects
 * of one shape only, which a walk over everything never has.
 *
 * Text of users enters the source as literals that JSON.stringify made, and nowhere else.
 */

import { compile } from './compile.ts'
import {
  apply,
  isArray,
  isDate,
  isProxy,
  keysOf,
  objectPrototype,
  prototypeOf,
  stringifyJson,
  valuesOf,
} from '../intrinsics.ts'
import { dateJson, dateToJSON } from './usual.ts'
import { addFirst, type Key, type Place, type Vocabulary } from './place.ts'
import type { Sketch, Variant } from './sketch.ts'
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  DATE,
  DOUBLE,
  FALSE,
  LONG_ROPE,
  MOST_INT,
  NULL,
  OPEN_ARRAY,
  OPEN_OBJECT,
  ROPE,
  SHORT_STRING,
  TRUE,
  type Tape,
} from './tape.ts'
import { makeCopyDoubles, makeCopyInts } from './loops.ts'
import { captureAnswer, captureNumbers, captureOther, captureRead, captureRest } from './walk.ts'

/** Captures elements from `start` to `end`; tells where it gave up, or `end`. */
export type Capture = (tape: Tape, value: readonly unknown[], start: number, end: number) => number

/** Captures an object that is no proxy and whose `toJSON` was read; false, with nothing of it read, if it has other keys. */
export type CaptureObject = (tape: Tape, value: object) => boolean

/** So many of the samples are objects of the usual kinds, or arrays of such, or nothing is generated. */
const LEAST_REGULAR = 0.8
/** Shorter arrays of numbers are no runs. */
const LEAST_RUN = 24
/** Shorter ropes than LONG_ROPE, as that of an element is joined to it. */
const LONG_PART = LONG_ROPE / 2

/** The words of a property. */
interface Property {
  readonly key: Key
  readonly name: string
}

/** A container that a value stands in, in the source. */
interface Container {
  /** The variable that holds it. */
  readonly x: string
  /** Its key in the one before; undefined for an element. */
  readonly name: string | undefined
  /** The variable of its index, where it has no key. */
  readonly index: string
}

/** Those of a value, each in the one before. */
type Enclosing = readonly Container[]

/** What a generated function needs room for when it goes on. */
interface Frame {
  need: number
}

/** Where a value stands that a generated function leaves to others. */
export interface Spot {
  readonly frame: Readonly<Frame>
  /** Undefined for an element. */
  readonly key: Key | undefined
  readonly place: Place
  /** Undefined for an index, which is told. */
  readonly name: string | undefined
  /** Those of the containers, in the same way. */
  readonly names: readonly (string | undefined)[]
}

/** Where a value stands in the source. */
interface Site extends Container {
  /** Undefined for an element. */
  readonly property: Property | undefined
  readonly place: Place
  readonly enclosing: Enclosing
  /** It is one of the values that the function was called for. */
  readonly isTop: boolean
}

/** Thrown where the lexicon is full, or the function would become too large. */
class Full extends Error {}

/** Words, and doubles, that a function may write between two looks at how much room is left. */
const MOST_ROOM = 4096
/** V8 optimizes no function of more than 60 KB of bytecode. Where there are more properties than this at all, */
const MOST_PROPERTIES = 120
/** what has more than this has a function of its own. */
const MOST_OF_PART = 16
/** Properties between two looks at how long the rope has become. */
const STRINGS_PER_LOOK = 32

/** Undefined where the elements have too little in common, or no code may be generated. */
export function generate(vocabulary: Vocabulary, sketch: Sketch, place: Place): Capture | undefined {
  if (sketch.regulars < sketch.count * LEAST_REGULAR) return undefined
  return attempt(() => new Generator(vocabulary, sketch, false).elements(sketch, place))
}

/** The same for objects, but for those of which there is one already. */
export function generateObject(vocabulary: Vocabulary, sketch: Sketch, place: Place): void {
  if (sketch.objects === 0 || sketch.usualObjects < sketch.objects * LEAST_REGULAR) return
  // Not of the list itself: arrays may have a `toJSON`.
  const shape = sketch.usualVariants.map(({ keys }) => keys.map(literal).join()).join(';')
  if (place.objects.some((known) => known.shape === shape)) return
  const capture = attempt(() => new Generator(vocabulary, sketch, true).object(sketch, place))
  if (capture !== undefined) addFirst(place.objects, { shape, capture })
}

function attempt<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch (error) {
    if (error instanceof Full || error instanceof EvalError) return undefined
    throw error
  }
}

/** Hands the variables of the function over to what else writes to the tape, and takes them back. */
const LEAVE = 'T.w = p; T.d = q; T.text = R + r;'
const TAKE = 'p = T.w; q = T.d; W = T.words; F = T.doubles; R = T.text; r = "";'
const ENTER = `T.reserve(NEED); ${TAKE}`
/** A quarter of the elements may be of other shapes. */
const MISS = 'if (++T.missed > 2 + ((i - start) >> 2)) { T.w = p; T.d = q; T.text = R; return i + 1; }'
const LOOK_AT_ROOM = `if (p > T.wordLimit - NEED || q > T.doubleLimit - NEED) { ${LEAVE} ${ENTER} }`
const LOOK_AT_ROPE = `if (r.length > ${LONG_PART}) { ${LEAVE} T.flushLong(); ${ENTER} }`

class Generator {
  readonly #vocabulary: Vocabulary
  readonly #isObject: boolean
  readonly #isLarge: boolean
  readonly #constants: unknown[] = []
  #variables = 0
  /** Words that the function may write between two looks at the room. */
  #words = 16
  readonly #frame: Frame = { need: 0 }

  constructor(vocabulary: Vocabulary, { weight }: Sketch, isObject: boolean) {
    this.#vocabulary = vocabulary
    this.#isObject = isObject
    this.#isLarge = MOST_PROPERTIES < weight
  }

  elements(sketch: Sketch, place: Place): Capture {
    const body = this.#value(sketch, topOf(place, undefined))
    return this.#compile<Capture>(`function capture(T, v, i, n) {
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
  }

  object(sketch: Sketch, place: Place): CaptureObject {
    const body = this.#objects(sketch, topOf(place, ''), 'return false;')
    return this.#compile<CaptureObject>(`function capture(T, e) {
        let p, q, W, F, R, r;
        const A = T.path, D = T.depth, B = D === 0 ? undefined : A[D - 1];
        ${ENTER}
        ${body}
        ${LEAVE}
        if (T.text.length > ${LONG_ROPE}) T.flushLong();
        return true;
      }`)
  }

  // What it gives is what the caller says its source does.
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters
  #compile<T>(source: string): T {
    if (MOST_ROOM < this.#words) throw new Full()
    this.#frame.need = this.#words
    const known = helpers()
    const names = keysOf(known).concat(this.#constants.map((_, index) => `C${index}`))
    const make = compile<T>(names, `"use strict"; const NEED = ${this.#words}; return ${source}`)
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

  /** The word of JSON text. */
  #word(text: string): number {
    const word = this.#vocabulary.word(text)
    if (word === undefined) throw new Full()
    return word
  }

  /** Statements that capture the value. */
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

  /** What tells captureOther and its like where they are: a constant, and the variables that belong to it. */
  #spot({ name, index, property, place, enclosing }: Site): string {
    const names = enclosing.map((outer) => outer.name)
    const spot: Spot = { frame: this.#frame, key: property?.key, place, name, names }
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

  /** Of what is an object and no proxy. Its `toJSON` comes first, as it does for JSON.stringify; V8 knows its shape from there. */
  #object(sketch: Sketch, site: Site, read: string, answer: string): string {
    const { x, property } = site
    const plain = this.#objects(sketch, site, read)
    if (sketch.dates === 0) return `const t = ${x}.toJSON; if (typeof t === "function") ${read} else ${plain}`
    const m = this.#variable('m')
    const date = `const ${m} = dateJson(T, ${x}); if (${m} !== undefined) { ${keyWord(property)} W[p++] = ${DATE}; F[q++] = ${m}; } else ${answer}`
    return `const t = ${x}.toJSON; if (typeof t === "function") { if (t === dateToJSON && isDate(${x})) { ${date} } else ${read} } else ${plain}`
  }

  /** Of what is no proxy and has no `toJSON`. `other` is for what it does not know. */
  #objects(sketch: Sketch, site: Site, other: string): string {
    const { x, place, enclosing, isTop } = site
    const isNew = enclosing
      .map((outer) => `${x} !== ${outer.x}`)
      .concat(`${x} !== B`, `(D < 2 || isOff(A, D - 1, ${x}))`)
      .join(' && ')
    const branches: string[] = []
    const elements = 0 < sketch.arrays ? this.#elements(sketch, site, other) : undefined
    if (elements !== undefined) branches.push(`if (isArray(${x}) && ${isNew}) { ${elements} }`)
    const variants = sketch.usualVariants
    if (this.#isPart(sketch, isTop)) generateObject(this.#vocabulary, sketch, place)
    else if (0 < variants.length) {
      const blocks = variants.map((variant) => this.#variant(variant, site))
      const block = blocks.reduceRight((otherwise, make) => make(otherwise), other)
      branches.push(`if ((${this.#isOfPrototype(variants, x)}) && ${isNew}) { ${block} }`)
    }
    return branches.concat(other).join(' else ')
  }

  /** Whether it is to have a function of its own. */
  #isPart({ weight }: Sketch, isTop: boolean): boolean {
    return this.#isLarge && !isTop && MOST_OF_PART < weight
  }

  #isOfPrototype(variants: readonly Variant[], x: string): string {
    const all = variants.map(({ prototype }) => prototype)
    const prototypes = all.filter((prototype, index) => all.indexOf(prototype) === index)
    return prototypes.map((prototype) => `prototypeOf(${x}) === ${this.#prototype(prototype)}`).join(' || ')
  }

  /** What finds out whether these are the keys of the value, and what then is true. */
  #keyGuard(keys: readonly string[], { x, isTop }: Site): readonly [guard: string, isOne: string] {
    const g = this.#variable('g')
    const loop = `for (const k in ${x}) { if (${g}.key !== k) { ${g} = undefined; break; } ${g} = ${g}.next; }`
    const begin = `let ${g} = ${this.#constant(chain(keys))};`
    const isOne = `${g} === END`
    if (!isTop || !this.#isObject) return [`${begin} ${loop}`, isOne]
    // Before all its keys are listed, which may be many: whether it has the last one.
    return [`${begin} if (${literal(keys[keys.length - 1] ?? '')} in ${x}) { ${loop} } else ${g} = undefined;`, isOne]
  }

  #prototype(prototype: object): string {
    return prototype === objectPrototype ? 'objectPrototype' : this.#constant(prototype)
  }

  /** What captures it if these are its keys, before what does `otherwise`. */
  #variant({ keys, values }: Variant, site: Site): (otherwise: string) => string {
    const { x, property, place } = site
    const enclosing = inside(site)
    const open = property === undefined ? OPEN_OBJECT : this.#word(`${prefix(property)}{`)
    let previous: Key | undefined
    const properties = keys.map((k, index) => {
      const key = this.#key(place, previous, k)
      previous = key
      const y = this.#variable('x')
      const sketch = values[index]
      if (sketch === undefined) return ''
      const own = { key, name: k }
      const inner: Site = { x: y, name: k, index: '', property: own, place: key.place, enclosing, isTop: false }
      const body = this.#value(sketch, inner)
      const look = 0 < index && index % STRINGS_PER_LOOK === 0 ? LOOK_AT_ROPE : ''
      return `${look} const ${y} = ${x}[${literal(k)}]; ${body}`
    })
    this.#words += 4
    const guard = this.#keyGuard(keys, site)
    const body = `${LOOK_AT_ROPE} W[p++] = ${open}; ${properties.join('\n')} W[p++] = ${CLOSE_OBJECT};`
    return (otherwise) => `{ ${guard[0]} if (${guard[1]}) { ${body} } else ${otherwise} }`
  }

  /** As the walk would know it. */
  #key(place: Place, previous: Key | undefined, name: string): Key {
    const known = place.keys.get(name) ?? this.#vocabulary.learnNow(name)
    if (known.isUnknown) throw new Full()
    place.keys.set(name, known)
    if (previous === undefined) place.first ??= known
    else previous.next ??= known
    return known
  }

  /** Of an array whose `toJSON` is no function. Undefined where the elements have too little in common. */
  #elements({ elements }: Sketch, site: Site, read: string): string | undefined {
    // Arrays of what is large are walked, and learned from.
    if (elements === undefined || !elements.isRegular || this.#isPart(elements, false)) return undefined
    const { x, property, place } = site
    const all = elements.count
    if (all === 0) return `if (${x}.length === 0) W[p++] = ${this.#word(`${prefix(property)}[],`)}; else ${read}`
    const n = this.#variable('n')
    const enclosing = inside(site)
    const begin = `${keyWord(property)} const ${n} = ${x}.length; W[p++] = ${OPEN_ARRAY};`
    const end = `W[p++] = ${CLOSE_ARRAY};`
    const j = this.#variable('j')
    const y = this.#variable('e')
    const room = `${LOOK_AT_ROPE} ${LOOK_AT_ROOM}`
    const element: Site = { x: y, name: undefined, index: j, property: undefined, place, enclosing, isTop: false }
    const body = this.#value(elements, element)
    const loop = `for (let ${j} = 0; ${j} < ${n}; ${j}++) { ${room} const ${y} = ${x}[${j}]; ${body} }`
    if (elements.numbers < all) return `${begin} ${loop} ${end}`
    const copies = `${this.#constant(makeCopyInts())}, ${this.#constant(makeCopyDoubles())}`
    const areInts = elements.ints === all
    const rest = `if (T.at < ${n}) captureRest(${x}, ${n}, T, ${this.#spot({ ...element, name: '' })});`
    const run = `${LEAVE} T.at = captureNumbers(T, ${x}, 0, ${n}, ${areInts}, ${copies}); ${rest} ${ENTER}`
    return `${begin} if (${n} < ${LEAST_RUN}) { ${loop} } else { ${run} } ${end}`
  }
}

/** What encloses the values inside of it. */
function inside({ x, name, index, enclosing }: Site): Enclosing {
  return enclosing.concat({ x, name, index })
}

function topOf(place: Place, name: string | undefined): Site {
  return { x: 'e', name, index: 'i', property: undefined, place, enclosing: [], isTop: true }
}

function number(x: string, property: Property | undefined): string {
  const fits = `${x} === (${x} | 0) && ${x} < ${MOST_INT} && ${x} >= -${MOST_INT}`
  return `${keyWord(property)} if (${fits}) W[p++] = (${x} | 0) << 4; else { F[q++] = ${x}; W[p++] = ${DOUBLE}; }`
}

function keyWord(property: Property | undefined): string {
  return property === undefined ? '' : `W[p++] = ${property.key.word};`
}

/** What stands before the value in JSON. */
function prefix(property: Property | undefined): string {
  return property === undefined ? '' : `${stringifyJson(property.name)}:`
}

/** A string literal: JSON is one since ES2019. */
function literal(text: string): string {
  return stringifyJson(text)
}

/** Keys in their order, each linked to the next. */
interface Link {
  readonly key: string | undefined
  readonly next: Link | undefined
}

const END: Link = { key: undefined, next: undefined }

function chain(keys: readonly string[]): Link {
  return keys.toReversed().reduce<Link>((next, key) => ({ key, next }), END)
}

/** Not in `path` below `depth`. */
function isOff(path: readonly unknown[], depth: number, value: unknown): boolean {
  for (let index = 0; index < depth; index += 1) if (path[index] === value) return false
  return true
}

/** What the source refers to. A function, as walk.ts and this module need each other. */
function helpers(): Readonly<Record<string, unknown>> {
  return {
    isArray,
    isDate,
    isProxy,
    isOff,
    prototypeOf,
    objectPrototype,
    dateJson,
    dateToJSON,
    captureAnswer,
    captureOther,
    captureRead,
    captureNumbers,
    captureRest,
    END,
  }
}
