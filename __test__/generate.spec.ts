/**
 * Proves that the example in `src/capture/generate.ts` is the function that the generator makes today. Prints what the
 * comment should be where it is not.
 */

import { readFileSync } from 'node:fs'
import test from 'ava'
import { generateElements } from '../src/capture/generate.ts'
import { PathNode } from '../src/capture/path-node.ts'
import { HELPERS } from '../src/capture/resume.ts'
import { Sketch } from '../src/capture/sketch.ts'
import { SHORT_STRING } from '../src/capture/strings.ts'
import { Vocabulary } from '../src/capture/vocabulary.ts'

const file = readFileSync(new URL('../src/capture/generate.ts', import.meta.url), 'utf8')

test('the example in generate.ts is the function for { id, name, tags }', (t) => {
  const comment = commentOf(sourceFor((id) => ({ id, name: `name ${id}`, tags: [`a ${id}`, `b ${id}`] })))
  const [example = ''] = /^\/\/ function capture\([^]*?^\/\/ \}$/m.exec(file) ?? []
  const isFresh = withoutSpace(example) === withoutSpace(comment)
  t.true(isFresh, `the example in src/capture/generate.ts should be:\n\n${comment}\n`)
})

test('user text is in the source only as literals', (t) => {
  const text = '*/ "\\"; throw new Error(); //\u2028'
  const source = sourceFor((id) => ({ [text]: text, [`${text}/*`]: [id] }))
  t.is(source.split(JSON.stringify(text)).length - 1, 2, 'the key is read, the constant is compared')
  const code = source.replaceAll(JSON.stringify(text), '').replaceAll(JSON.stringify(`${text}/*`), '')
  t.notRegex(code, /throw/)
})

/** Generates the function for elements like these samples. Returns its source. */
function sourceFor(sampleOf: (id: number) => object): string {
  const sketch = new Sketch()
  for (let id = 0; id < 24; id += 1) sketch.add(sampleOf(id), Infinity)
  const vocabulary = new Vocabulary(() => {})
  const learned = generateElements(vocabulary, sketch, new PathNode(), HELPERS)
  // The bound of short strings depends on Node: the example has that of Node 24.
  return String(learned?.capture).replaceAll(`<= ${SHORT_STRING} /* short */`, '<= 112 /* short */')
}

/** Formats source as a comment: two spaces for each open brace. */
function commentOf(source: string): string {
  let level = 0
  const lines = source.split('\n').map((line) => line.trim())
  const indented = lines.filter(Boolean).map((line) => {
    const braces = line.replaceAll(/"(?:[^"\\]|\\.)*"|\/\*.*?\*\//g, '').match(/[{}]/g) ?? []
    const indentation = '  '.repeat(line.startsWith('}') ? level - 1 : level)
    for (const brace of braces) level += brace === '{' ? 1 : -1
    return `// ${indentation}${line}`
  })
  return indented.join('\n')
}

function withoutSpace(comment: string): string {
  return comment.replaceAll(/^\/\/|\s+/gm, '')
}
