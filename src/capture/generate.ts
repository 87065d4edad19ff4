/**
 * Generates one function for each path node whose values look alike, on the JS thread; `learning.ts` calls it. By its
 * keys, before anything else is read, the function finds out whether an object is of a shape it knows; then it reads
 * the values in order. Every load in it has seen objects of one shape only, which no load of a general walk has.
 * User text enters the source only as literals made by JSON.stringify.
 */

import { ENTER, FunctionSource, Full, LEAVE, LOOK_AT_ROOM, topOf } from './function-source.ts'
import type { CaptureElements, CaptureObject, Helpers, Learned, LearnedElements, LearnedObject } from './learned.ts'
import type { PathNode } from './path-node.ts'
import type { Sketch } from './sketch.ts'
import { LONG_ROPE } from './strings.ts'
import { ValueSource } from './value-source.ts'
import type { Vocabulary } from './vocabulary.ts'

/** Least share of samples that are objects of usual kinds, or arrays of such. With less, nothing is generated. */
const LEAST_REGULAR = 0.8

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
  return attempt(() => new Generator(vocabulary, helpers).elements(sketch, node))
}

/** Generates a function for objects. Returns undefined as `generateElements` does. */
export function generateObject(
  vocabulary: Vocabulary,
  sketch: Sketch,
  node: PathNode,
  helpers: Helpers,
): Learned | undefined {
  if (sketch.objects === 0 || sketch.usualObjects < sketch.objects * LEAST_REGULAR) return undefined
  return attempt(() => new Generator(vocabulary, helpers).object(sketch, node))
}

function attempt<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch (error) {
    if (error instanceof Full || error instanceof EvalError) return undefined
    throw error
  }
}

/** Source of the containers around the values: those that are open, and the innermost of them. */
const SURROUNDINGS = 'const { path, depth } = context, parent = depth === 0 ? undefined : path[depth - 1];'

class Generator {
  readonly #vocabulary: Vocabulary
  readonly #helpers: Helpers
  readonly #source: FunctionSource

  constructor(vocabulary: Vocabulary, helpers: Helpers) {
    this.#vocabulary = vocabulary
    this.#helpers = helpers
    this.#source = new FunctionSource(vocabulary)
  }

  elements(sketch: Sketch, node: PathNode): LearnedElements {
    const body = this.#values(sketch, false).value(sketch, topOf(node, undefined))
    const source = `function capture(context, value, index, end) {
      let w, d, words, doubles, text, rope;
      ${SURROUNDINGS}
      const start = index; context.missed = 0;
      ${ENTER}
      for (; index < end; index++) {
        ${LOOK_AT_ROOM}
        const x = value[index];
        ${body}
        if (rope !== "") {
          text += rope; rope = "";
          if (text.length > ${LONG_ROPE}) {
            ${LEAVE} context.flushLong();
            ${ENTER}
          }
        }
      }
      context.w = w; context.d = d; context.text = text; return index;
    }`
    const capture = this.#source.compile<CaptureElements>(source, this.#helpers)
    return { isObject: false, capture, levels: this.#source.levels }
  }

  object(sketch: Sketch, node: PathNode): LearnedObject {
    const body = this.#values(sketch, true).object(sketch, topOf(node, ''), 'return false;')
    const source = `function capture(context, x) {
      let w, d, words, doubles, text, rope;
      ${SURROUNDINGS}
      ${ENTER}
      ${body}
      ${LEAVE}
      if (context.text.length > ${LONG_ROPE}) context.flushLong();
      return true;
    }`
    const capture = this.#source.compile<CaptureObject>(source, this.#helpers)
    return { isObject: true, capture, levels: this.#source.levels }
  }

  #values({ weight }: Sketch, isObject: boolean): ValueSource {
    const generatePart = (sketch: Sketch, node: PathNode): void => {
      const learned = generateObject(this.#vocabulary, sketch, node, this.#helpers)
      if (learned !== undefined) node.learnPart(learned)
    }
    return new ValueSource(this.#source, { isObject, weight, generatePart })
  }
}
