/** Results of benchmarks: one file of tables for each day. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Puts sections in the day's file, in the place of those of the same benchmark on the same Node. A section is
 * `{ noun, node, commit, machine, code, output }`: what was measured, of what, and what the benchmark printed.
 */
export function keep(folder, day, sections) {
  const path = join(folder, `${day}.md`)
  const made = sections.map(sectionOf)
  const before = existsSync(path) ? read(readFileSync(path, 'utf8')) : []
  const all = [...before.filter((old) => !made.some((section) => isSame(old, section))), ...made]
  all.sort((a, b) => a.noun.localeCompare(b.noun) || a.node.localeCompare(b.node, 'en', { numeric: true }))
  mkdirSync(folder, { recursive: true })
  writeFileSync(path, `${[`# Benchmarks of ${day}`, ...all.map(({ text }) => text)].join('\n\n')}\n`)
}

function isSame(a, b) {
  return a.noun === b.noun && a.node === b.node
}

/** The sections of a file: each begins with its benchmark and its Node. */
function read(text) {
  return text.split(/^(?=## \S+, )/m).flatMap((part) => {
    const [, noun, node] = /^## (\S+), (.+)$/m.exec(part) ?? []
    return part.startsWith('## ') ? [{ noun, node, text: part.trim() }] : []
  })
}

function sectionOf({ noun, node, commit, machine, code, output }) {
  const report = code === 0 ? bodyOf(output) : `It failed, with code ${code}.`
  return { noun, node, text: `## ${noun}, ${node}\n\n${commit}, ${machine}\n\n${report.replaceAll(/^#/gm, '##')}` }
}

/** The output of a benchmark, without the title and the origin of its own, which stand above it here. */
function bodyOf(output) {
  const at = output.search(/^# /m)
  const text = at === -1 ? output : output.slice(at).split('\n\n').slice(2).join('\n\n')
  return text.trim()
}
