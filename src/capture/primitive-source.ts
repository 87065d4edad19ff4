/** Writes the source that captures strings, numbers, booleans and null. Runs on the JS thread; `value-source.ts` calls it. */

import { stringifyJson } from '../runtime/intrinsics.ts'
import { literal, prefix, writeKey, type FunctionSource, type Site } from './function-source.ts'
import { DOUBLE, FALSE, MOST_INT, NULL, ROPE, TRUE } from './opcodes.ts'
import type { Sketch } from './sketch.ts'
import { SHORT_STRING } from './strings.ts'

/** Makes the statements for a string: a constant of the lexicon, a part of the rope, or characters of its own. */
export function stringSource(source: FunctionSource, sketch: Sketch, { x, property }: Site, other: string): string {
  const length = source.variable('length')
  const constants = sketch.constants.map((text) => {
    const word = source.word(`${prefix(property)}${stringifyJson(text)},`)
    return `if (${x} === ${literal(text)}) words[w++] = ${word} /* constant */; else `
  })
  const middling = `
      const word = context.middling(${x}, ${length});
      if (word < 0) {
        ${other}
      } else {
        ${writeKey(property)} words[w++] = word;
      }`
  const branches = `
    const ${length} = ${x}.length;
    if (${length} <= ${SHORT_STRING} /* short */) {
      ${writeKey(property)} words[w++] = ${length} << 4 | ${ROPE} /* in the rope */; rope += ${x};
    } else {${middling}
    }`
  return constants.length === 0 ? branches : `${constants.join('')}{${branches}\n}`
}

/** Makes the statements for a number: an integer in its word, or a double. */
export function numberSource({ x, property }: Site): string {
  return `
    ${writeKey(property)}
    if (${x} === (${x} | 0) && ${x} < ${MOST_INT} && ${x} >= -${MOST_INT}) words[w++] = (${x} | 0) << 4;
    else { doubles[d++] = ${x}; words[w++] = ${DOUBLE} /* double */; }`
}

export function booleanSource(source: FunctionSource, { x, property }: Site): string {
  if (property === undefined) return `words[w++] = ${x} ? ${TRUE} /* true */ : ${FALSE} /* false */;`
  const yes = source.word(`${prefix(property)}true,`)
  const no = source.word(`${prefix(property)}false,`)
  return `words[w++] = ${x} ? ${yes} /* key, true */ : ${no} /* key, false */;`
}

export function nullSource(source: FunctionSource, { property }: Site): string {
  if (property === undefined) return `words[w++] = ${NULL} /* null */;`
  return `words[w++] = ${source.word(`${prefix(property)}null,`)} /* key, null */;`
}
