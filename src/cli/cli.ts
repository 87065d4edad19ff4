#!/usr/bin/env node
/** Command line: checks, repairs and prints JSONL files. npm installs it as `offloop`. */

import { access } from 'node:fs/promises'
import { parseArgs, type ParseArgsConfig } from 'node:util'
import { Bar, sizeOf } from './bar.ts'
import { countsOf, statsOf } from './counts.ts'
import { readJsonl, repair, version, type Durability, type RepairReport, type TailPolicy } from '../index.ts'
import { countRows, unwrap } from '../runtime/native.ts'
import { run } from '../runtime/pool.ts'
import { watched } from '../runtime/progress.ts'

const HELP = `Usage: offloop <command> [options] <file...>

Looks at JSON Lines files and repairs what a crash has torn.

Commands:
  check   says whether files are clean: bad rows, and what a repair would do
  repair  makes files safe to append to; torn bytes go to a sidecar beside them
  tail    prints the last rows, or fields of them
  scan    counts rows, bad rows, bytes, and fields; with --stats also types and sizes

Options:
  --policy <name>      repair: quarantine (default), truncate or isolate
  --durability <name>  repair: none, data or full (default)
  -n, --rows <count>   tail: how many rows (default 10)
  -f, --field <ptr>    tail: a JSON Pointer, once for each field
  --stats              scan: for each field its rows, types and bytes; * stands for array elements
  --json               check, scan: a JSON object a file, one a line
  -h, --help           this text
  -v, --version        the version

Exit codes: 0 clean, 1 needs repair or has bad rows, 2 cannot run.

Examples:
  offloop check rollouts/*.jsonl
  offloop repair --policy truncate train.jsonl
  offloop tail -n 3 --field /example_id --field /reward rollouts.jsonl
  offloop scan --json rollouts.jsonl | jq .fields
  offloop scan --stats rollouts.jsonl
`

const OPTIONS = {
  policy: { type: 'string' },
  durability: { type: 'string' },
  rows: { type: 'string', short: 'n' },
  field: { type: 'string', short: 'f', multiple: true },
  stats: { type: 'boolean' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const satisfies ParseArgsConfig['options']

type CommandFlags = ReturnType<typeof parse>['values']

/** Runs a command on one file. Returns its exit code. */
type Command = (path: string, values: CommandFlags, signal: AbortSignal) => Promise<0 | 1>

const COMMANDS: Readonly<Record<string, { readonly command: Command; readonly options: readonly string[] }>> = {
  check: { command: check, options: ['json'] },
  repair: { command: mend, options: ['policy', 'durability'] },
  tail: { command: tail, options: ['rows', 'field'] },
  scan: { command: scan, options: ['json', 'stats'] },
}
const CANNOT_RUN = 2
/** Exit code that shells use for a program that SIGINT ended. */
const INTERRUPTED = 130

/** Wrong arguments of the command line. */
class UsageError extends Error {}

function parse(args: string[]) {
  return parseArgs({ args, options: OPTIONS, allowPositionals: true })
}

async function main(args: string[]): Promise<number> {
  const interrupt = new AbortController()
  const onInterrupt = (): void => interrupt.abort()
  process.once('SIGINT', onInterrupt)
  // `offloop tail | head` ends when `head` has closed the pipe.
  process.stdout.on('error', () => process.exit(0))
  try {
    return await execute(args, interrupt.signal)
  } catch (error) {
    if (interrupt.signal.aborted) return INTERRUPTED
    const [first = ''] = String(error instanceof Error ? error.message : error).split('\n')
    process.stderr.write(`offloop: ${first}${error instanceof UsageError ? ' (offloop --help)' : ''}\n`)
    return CANNOT_RUN
  } finally {
    process.off('SIGINT', onInterrupt)
  }
}

async function execute(args: string[], signal: AbortSignal): Promise<number> {
  const { values, positionals } = parseOrThrow(args)
  if (values.version === true) return print(`${version}\n`)
  const [name, ...paths] = positionals
  if (values.help === true || name === undefined) return print(HELP)
  const known = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (known === undefined) throw new UsageError(`there is no command ${name}`)
  const foreign = Object.keys(values).find((option) => !known.options.includes(option))
  if (foreign !== undefined) throw new UsageError(`${name} has no option --${foreign}`)
  if (paths.length === 0) throw new UsageError(`${name} needs a file`)
  let code = 0
  // oxlint-disable-next-line no-await-in-loop -- each file has a progress bar of its own
  for (const path of paths) code = Math.max(code, await onFile(known.command, path, values, signal))
  return code
}

async function onFile(command: Command, path: string, values: CommandFlags, signal: AbortSignal): Promise<0 | 1> {
  // `repair` treats a missing file as clean. On the command line, a missing file is an error.
  await access(path)
  return await command(path, values, signal)
}

function parseOrThrow(args: string[]): ReturnType<typeof parse> {
  try {
    return parse(args)
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function print(text: string): 0 {
  process.stdout.write(text)
  return 0
}

async function withBar<T>(path: string, work: (bar: Bar) => Promise<T>): Promise<T> {
  const { NO_COLOR = '' } = process.env
  const bar = new Bar(process.stderr, path, NO_COLOR === '')
  try {
    return await work(bar)
  } finally {
    bar.clear()
  }
}

// ───────────────────────────── commands ─────────────────────────────

async function check(path: string, { json = false }: CommandFlags, signal: AbortSignal): Promise<0 | 1> {
  const report = await withBar(path, (bar) =>
    repair(path, { policy: 'report', verify: 'all', signal, onProgress: (done) => bar.show(done) }),
  )
  if (json) print(`${JSON.stringify({ path, ...report })}\n`)
  else {
    print(`${path}: ${described(report)}\n`)
    for (const { offset, length, cause } of report.badRows) print(`  byte ${offset}: ${cause}, ${length} bytes\n`)
  }
  return report.action === 'none' && report.badRows.length === 0 ? 0 : 1
}

function described({ action, cause, offset, tornBytes, badRows, size }: RepairReport): string {
  const parts: string[] = []
  if (action === 'terminated') parts.push('the last row lacks its newline')
  else if (action !== 'none') parts.push(`torn from byte ${offset} on (${cause}), ${tornBytes} bytes`)
  if (badRows.length !== 0) parts.push(`${badRows.length} bad ${badRows.length === 1 ? 'row' : 'rows'}`)
  return parts.length === 0 ? `clean, ${sizeOf(size)}` : parts.join('; ')
}

const POLICIES: readonly TailPolicy[] = ['quarantine', 'truncate', 'isolate']
const DURABILITIES: readonly Durability[] = ['none', 'data', 'full']

async function mend(path: string, { policy, durability }: CommandFlags, signal: AbortSignal): Promise<0 | 1> {
  const report = await repair(path, {
    policy: oneOf('policy', policy, POLICIES),
    durability: oneOf('durability', durability, DURABILITIES),
    signal,
  })
  const { action, cause, offset, tornBytes, sidecar } = report
  const what: Readonly<Record<RepairReport['action'], string>> = {
    none: 'clean',
    terminated: 'ended the last row with a newline',
    quarantined: `moved ${tornBytes} torn bytes (${cause}) from byte ${offset} on to ${sidecar}`,
    truncated: `cut off ${tornBytes} torn bytes (${cause}) from byte ${offset} on`,
    isolated: `ended the torn bytes (${cause}) from byte ${offset} on with a newline`,
  }
  print(`${path}: ${what[action]}\n`)
  return 0
}

function oneOf<T extends string>(name: string, value: string | undefined, choices: readonly T[]): T | undefined {
  if (value === undefined) return undefined
  const choice = choices.find((other) => other === value)
  if (choice === undefined) throw new UsageError(`--${name} must be one of ${choices.join(', ')}`)
  return choice
}

const DEFAULT_ROWS = 10

async function tail(path: string, { rows, field }: CommandFlags, signal: AbortSignal): Promise<0 | 1> {
  const last = rows === undefined ? DEFAULT_ROWS : Number(rows)
  if (!Number.isSafeInteger(last) || last < 0) throw new UsageError('--rows must be a number of rows')
  const options = { last, signal }
  if (field === undefined) {
    for await (const batch of readJsonl(path, options)) await write(batch.map(({ bytes }) => bytes))
  } else {
    for await (const batch of readJsonl(path, { ...options, fields: field })) {
      await write(batch.map(({ fields }) => Buffer.from(JSON.stringify(fields))))
    }
  }
  return 0
}

/** Writes rows and waits until stdout takes more. */
async function write(rows: readonly Uint8Array[]): Promise<void> {
  const newline = Buffer.from('\n')
  const text = Buffer.concat(rows.flatMap((row) => [row, newline]))
  if (!process.stdout.write(text)) await new Promise((resolve) => process.stdout.once('drain', resolve))
}

async function scan(path: string, { json = false, stats = false }: CommandFlags, signal: AbortSignal): Promise<0 | 1> {
  const text = await withBar(path, async (bar) =>
    unwrap(
      await watched(
        (done) => bar.show(done),
        signal,
        (stopping, progress) =>
          run((stop) => countRows(path, stats, progress, stop), { lane: 'files', signal: stopping }),
      ),
    ),
  )
  const { counts, table } = stats ? statsOf(text) : countsOf(text)
  print(json ? `${JSON.stringify({ path, ...counts })}\n` : `${path}\n${table}`)
  return counts.badRows === 0 ? 0 : 1
}

async function start(): Promise<void> {
  process.exitCode = await main(process.argv.slice(2))
}

void start()
