/**
 * Generates one function for each path node whose values look alike, on the JS thread; `learning.ts` calls it. By its
 * keys, before anything else is read, the function finds out whether an object is of a shape it knows; then it reads
 * the values in order. Every load in it has seen objects of one shape only, which no load of a general walk has.
 * User text enters the source only as literals made by JSON.stringify.
 */

// The function for elements like { id: 1, name: 'x', tags: ['a', 'b'] }. `__test__/generate.spec.ts` keeps it fresh.
// `words[w++]` writes a word of the tape (`opcodes.ts`), `doubles[d++]` a double. Short strings are joined in `rope`,
// which is copied when it is long. `spot1` and the like are constants that name a place in the value. `captureRead` and
// `captureOther` leave a value to the walk; the line after such a call takes the variables back.
//
// function capture(context, value, index, end) {
//   let w, d, words, doubles, text, rope;
//   const { path, depth } = context, parent = depth === 0 ? undefined : path[depth - 1];
//   const start = index; context.missed = 0;
//   context.reserve(NEED); ({ w, d, words, doubles, text } = context); rope = "";
//   for (; index < end; index++) {
//     if (w > context.wordLimit - NEED || d > context.doubleLimit - NEED) {
//       context.w = w; context.d = d; context.text = text + rope;
//       context.reserve(NEED); ({ w, d, words, doubles, text } = context); rope = "";
//     }
//     const x = value[index];
//     if (typeof x === "object" && x !== null && !isProxy(x)) {
//       const toJSON = x.toJSON;
//       if (typeof toJSON === "function") {
//         captureRead(x, toJSON, context, w, d, text + rope, spot1, index);
//         ({ w, d, words, doubles, text } = context); rope = "";
//         if (++context.missed > 2 + ((index - start) >> 2)) {
//           context.w = w; context.d = d; context.text = text; return index + 1;
//         }
//       } else if (prototypeOf(x) === objectPrototype && x !== parent && (depth < 2 || isOff(path, depth - 1, x))) {
//         let next14 = keys15;
//         for (const key in x) {
//           if (next14.key !== key) { next14 = undefined; break; }
//           next14 = next14.next;
//         }
//         if (next14 === END_OF_KEYS) {
//           if (rope.length > 8192) {
//             context.w = w; context.d = d; context.text = text + rope; context.flushLong();
//             context.reserve(NEED); ({ w, d, words, doubles, text } = context); rope = "";
//           }
//           words[w++] = 22 /* { */;
//           const x2 = x["id"];
//           if (typeof x2 === "number") {
//             words[w++] = 8 /* key */;
//             if (x2 === (x2 | 0) && x2 < 134217728 && x2 >= -134217728) words[w++] = (x2 | 0) << 4;
//             else { doubles[d++] = x2; words[w++] = 1 /* double */; }
//           } else {
//             captureOther(x2, context, w, d, text + rope, spot3, x, index);
//             ({ w, d, words, doubles, text } = context); rope = "";
//           }
//           const x4 = x["name"];
//           if (typeof x4 === "string") {
//             const length6 = x4.length;
//             if (length6 <= 112 /* short */) {
//               words[w++] = 24 /* key */; words[w++] = length6 << 4 | 4 /* in the rope */; rope += x4;
//             } else {
//               const word = context.middling(x4, length6);
//               if (word < 0) {
//                 captureOther(x4, context, w, d, text + rope, spot5, x, index);
//                 ({ w, d, words, doubles, text } = context); rope = "";
//               } else {
//                 words[w++] = 24 /* key */; words[w++] = word;
//               }
//             }
//           } else {
//             captureOther(x4, context, w, d, text + rope, spot5, x, index);
//             ({ w, d, words, doubles, text } = context); rope = "";
//           }
//           const x7 = x["tags"];
//           if (typeof x7 === "object" && x7 !== null && !isProxy(x7)) {
//             const toJSON = x7.toJSON;
//             if (typeof toJSON === "function") {
//               captureRead(x7, toJSON, context, w, d, text + rope, spot8, x, index);
//               ({ w, d, words, doubles, text } = context); rope = "";
//             } else if (isArray(x7) && x7 !== x && x7 !== parent && (depth < 2 || isOff(path, depth - 1, x7))) {
//               words[w++] = 40 /* key */;
//               const length9 = x7.length;
//               words[w++] = 6 /* [ */;
//               for (let index10 = 0; index10 < length9; index10++) {
//                 if (rope.length > 8192) {
//                   context.w = w; context.d = d; context.text = text + rope; context.flushLong();
//                   context.reserve(NEED); ({ w, d, words, doubles, text } = context); rope = "";
//                 }
//                 if (w > context.wordLimit - NEED || d > context.doubleLimit - NEED) {
//                   context.w = w; context.d = d; context.text = text + rope;
//                   context.reserve(NEED); ({ w, d, words, doubles, text } = context); rope = "";
//                 }
//                 const x11 = x7[index10];
//                 if (typeof x11 === "string") {
//                   const length13 = x11.length;
//                   if (length13 <= 112 /* short */) {
//                     words[w++] = length13 << 4 | 4 /* in the rope */; rope += x11;
//                   } else {
//                     const word = context.middling(x11, length13);
//                     if (word < 0) {
//                       captureOther(x11, context, w, d, text + rope, spot12, x, index, x7, index10);
//                       ({ w, d, words, doubles, text } = context); rope = "";
//                     } else {
//                       words[w++] = word;
//                     }
//                   }
//                 } else {
//                   captureOther(x11, context, w, d, text + rope, spot12, x, index, x7, index10);
//                   ({ w, d, words, doubles, text } = context); rope = "";
//                 }
//               }
//               words[w++] = 7 /* ] */;
//             } else {
//               captureRead(x7, toJSON, context, w, d, text + rope, spot8, x, index);
//               ({ w, d, words, doubles, text } = context); rope = "";
//             }
//           } else {
//             captureOther(x7, context, w, d, text + rope, spot8, x, index);
//             ({ w, d, words, doubles, text } = context); rope = "";
//           }
//           words[w++] = 23 /* } */;
//         } else {
//           captureRead(x, toJSON, context, w, d, text + rope, spot1, index);
//           ({ w, d, words, doubles, text } = context); rope = "";
//           if (++context.missed > 2 + ((index - start) >> 2)) {
//             context.w = w; context.d = d; context.text = text; return index + 1;
//           }
//         }
//       } else {
//         captureRead(x, toJSON, context, w, d, text + rope, spot1, index);
//         ({ w, d, words, doubles, text } = context); rope = "";
//         if (++context.missed > 2 + ((index - start) >> 2)) {
//           context.w = w; context.d = d; context.text = text; return index + 1;
//         }
//       }
//     } else {
//       captureOther(x, context, w, d, text + rope, spot1, index);
//       ({ w, d, words, doubles, text } = context); rope = "";
//       if (++context.missed > 2 + ((index - start) >> 2)) {
//         context.w = w; context.d = d; context.text = text; return index + 1;
//       }
//     }
//     if (rope !== "") {
//       text += rope; rope = "";
//       if (text.length > 16384) {
//         context.w = w; context.d = d; context.text = text + rope; context.flushLong();
//         context.reserve(NEED); ({ w, d, words, doubles, text } = context); rope = "";
//       }
//     }
//   }
//   context.w = w; context.d = d; context.text = text; return index;
// }

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
