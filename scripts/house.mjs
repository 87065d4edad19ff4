/**
 * Rules of the house that no linter knows, with a bound each: one meaning for a type name, doc comments with a subject, glue
 * without loops, no import cycles, documents that can be read at once. Prints what it counts; fails over a bound.
 */

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { root } from './steps.mjs'

const files = execFileSync('git', ['ls-files', 'src', 'crates', 'README.md', 'ARCHITECTURE.md'], {
  cwd: root,
  encoding: 'utf8',
}).split('\n')
const sources = new Map(
  files.filter((file) => /\.(ts|rs|md)$/.test(file)).map((file) => [file, readFileSync(join(root, file), 'utf8')]),
)
const product = [...sources].filter(([file]) => /\.(ts|rs)$/.test(file) && !/\/(tests|benches)\//.test(file))
const glue = product.filter(([file]) => file.startsWith('crates/binding/') && !file.endsWith('/hooks.rs'))

const isVerbose = process.argv.includes('--verbose')
const names = definitions()
const several = [...names].filter(([, places]) => 1 < places.size)
const many = several.filter(([, places]) => 2 < places.size)
const comments = docComments()
const subjectless = comments.filter(({ text }) => /^(The same|Of|That|Those|As|What|Who|Where)\b/.test(text))
const loops = glue.flatMap(([file, text]) => loopsOf(file, text))
const cycles = importCycles()

const rules = [
  [
    'type names with several definitions',
    several.length,
    45,
    several.map(([name, places]) => `${name}: ${[...places].join(', ')}`),
  ],
  ['type names with definitions in three or more files', many.length, 8, many.map(([name]) => name)],
  [
    `doc comments without a subject, % of ${comments.length}`,
    Math.round((1000 * subjectless.length) / comments.length) / 10,
    2,
    subjectless.map(({ file, text }) => `${file}: ${text.slice(0, 80)}`),
  ],
  ['loops in crates/binding', loops.length, 12, loops],
  ['lines of crates/binding', sum(glue, ([, text]) => text.split('\n').length - 1), 3900, []],
  ['import cycles in src', cycles.length, 0, cycles],
  ['words of README.md', words('README.md'), 1500, []],
  ['words of ARCHITECTURE.md', words('ARCHITECTURE.md'), 2400, []],
]
for (const [what, count, most, found] of rules) {
  const isOver = most < count
  console.log(`${isOver ? '✘' : '✔'} ${what}: ${count} (at most ${most})`)
  if (isOver) process.exitCode = 1
  if (isVerbose || isOver) for (const line of found) console.log(`    ${line}`)
}

/** Names of types, and the files that define each. Types within an impl or a function are not names of the repository. */
function definitions() {
  const found = new Map()
  const pattern =
    /^(?:export |pub(?:\([a-z]+\))? )?(?:declare |abstract |const )?(?:(?:class|interface|struct|enum|trait|union) |type (?=\w+(?:<[^=]*>)? =))(\w+)/gm
  for (const [file, text] of product) {
    for (const [, name] of text.matchAll(pattern)) {
      if (/^[A-Z]/.test(name)) found.set(name, (found.get(name) ?? new Set()).add(file))
    }
  }
  return found
}

function docComments() {
  const found = []
  for (const [file, text] of product) {
    const pattern = file.endsWith('.ts')
      ? /\/\*\*\s*(?:\n\s*\*\s*)?(\S[^\n]*)/g
      : /(?<!\/\/[/!][^\n]*\n\s*)\/\/[/!] ?([^\n]*)/g
    for (const [, first] of text.matchAll(pattern)) found.push({ file, text: first })
  }
  return found
}

function loopsOf(file, text) {
  return [...text.matchAll(/^\s*(?:'\w+: )?(?:for\b.*\bin\b|while\b|loop\b)[^\n]*\{/gm)].map(
    ([line]) => `${file}: ${line.trim()}`,
  )
}

function importCycles() {
  const imports = new Map()
  for (const [file, text] of product.filter(([name]) => name.endsWith('.ts'))) {
    const targets = [...text.matchAll(/^(?:import|export) (?!type\b)[^;]*? from '(\.[^']+)'/gms)].map(([, to]) =>
      normalize(join(dirname(file), to)),
    )
    imports.set(file, targets)
  }
  const found = []
  const done = new Set()
  const visit = (file, path) => {
    const at = path.indexOf(file)
    if (at !== -1) found.push(path.slice(at).concat(file).join(' → '))
    if (at !== -1 || done.has(file)) return
    for (const target of imports.get(file) ?? []) visit(target, path.concat(file))
    done.add(file)
  }
  for (const file of imports.keys()) visit(file, [])
  return found
}

function words(file) {
  const prose = (sources.get(file) ?? '').replaceAll(/```[^]*?```/g, '').replaceAll(/<[^>]+>/g, '')
  return prose.split(/\s+/).filter((word) => /\w/.test(word)).length
}

function sum(list, of) {
  return list.reduce((total, item) => total + of(item), 0)
}
