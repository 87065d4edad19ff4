/** Programs that are killed, or whose system calls fail: compiled once, so that they start without a loader. */

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const sources = fileURLToPath(new URL('programs/', import.meta.url))
const compiled = fileURLToPath(new URL('../../target/faults/programs/', import.meta.url))

/** They import what was built, as users do. */
function compile(): void {
  mkdirSync(compiled, { recursive: true })
  const module = ts.ModuleKind.ESNext
  const compilerOptions = { module, target: ts.ScriptTarget.ES2023, rewriteRelativeImportExtensions: true }
  for (const name of readdirSync(sources)) {
    const { outputText } = ts.transpileModule(readFileSync(sources + name, 'utf8'), { compilerOptions })
    const path = compiled + name.replace(/\.ts$/, '.js')
    // At once: other processes may be reading it.
    writeFileSync(`${path}.${process.pid}`, outputText.replace('../../../src/', '../../../dist/'))
    renameSync(`${path}.${process.pid}`, path)
  }
}

compile()

export function programPath(name: string): string {
  return `${compiled}${name}.js`
}

/** What children inherit: no loader, no flags. */
export const programEnv: NodeJS.ProcessEnv = { ...process.env, NODE_OPTIONS: '' }

export interface Played {
  readonly lines: readonly string[]
  readonly stderr: string
  readonly signal: NodeJS.Signals | null
}

/** Runs a program with `settings`; `see` is told of each line it says. */
export function play(
  name: string,
  settings: object,
  see: (line: string, child: ChildProcessWithoutNullStreams) => void = () => undefined,
): Promise<Played> {
  const env = { ...programEnv, OFFLOOP_ROUND: JSON.stringify(settings) }
  const child = spawn(process.execPath, [programPath(name)], { env })
  const lines: string[] = []
  let [rest, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const told = (rest + text).split('\n')
    rest = told.pop() ?? ''
    for (const line of told) {
      lines.push(line)
      see(line, child)
    }
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (_, signal) => resolve({ lines, stderr, signal }))
  })
}
