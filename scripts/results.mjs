/** Results of benchmarks: a file a day to be read, and one to be compared with. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Puts sections in the day's files, in the place of those of the same benchmark on the same Node. A section is
 * `{ noun, node, commit, machine, code, output }`: what was measured, of what, and what the benchmark printed.
 */
export function keep(folder, day, sections) {
  const path = join(folder, `${day}.json`)
  const before = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).sections : []
  const made = sections.map(sectionOf)
  const all = [...before.filter((old) => !made.some((section) => isSame(old, section))), ...made]
  all.sort((a, b) => a.noun.localeCompare(b.noun) || a.node.localeCompare(b.node, 'en', { numeric: true }))
  mkdirSync(folder, { recursive: true })
  writeFileSync(path, `${JSON.stringify({ day, sections: all }, undefined, 1)}\n`)
  writeFileSync(join(folder, `${day}.md`), `${[`# Benchmarks of ${day}`, ...all.map(textOf)].join('\n\n')}\n`)
}

function isSame(a, b) {
  return a.noun === b.noun && a.node === b.node
}

function sectionOf({ output, ...rest }) {
  const report = rest.code === 0 ? bodyOf(output) : `It failed, with code ${rest.code}.`
  return { ...rest, report, tables: tablesOf(report) }
}

/** What a benchmark printed, without the title and the origin of its own, which stand above it here. */
function bodyOf(output) {
  const at = output.search(/^# /m)
  const text = at === -1 ? output : output.slice(at).split('\n\n').slice(2).join('\n\n')
  return text.trim()
}

/** Lists of rows, which are lists of cells; the first is the head. */
function tablesOf(report) {
  return [...report.matchAll(/(?:^\|.*\|$\n?)+/gm)].map(([table]) =>
    table
      .trim()
      .split('\n')
      .filter((line) => !/^[|\s:-]+$/.test(line))
      .map((line) =>
        line
          .slice(1, -1)
          .split('|')
          .map((cell) => cell.trim()),
      ),
  )
}

function textOf({ noun, node, commit, machine, report }) {
  return `## ${noun}, ${node}\n\n${commit}, ${machine}\n\n${report.replaceAll(/^#/gm, '##')}`
}
