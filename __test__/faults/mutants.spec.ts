import { spawn } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import test, { type ExecutionContext } from 'ava'
import { isFull } from './extent.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const folder = fileURLToPath(new URL('mutants/', import.meta.url))
const tree = join(root, 'target/mutants/tree')
const LIBRARY = 'target/hooks/liboffloop_binding.so'

interface Mutant {
  readonly name: string
  readonly path: string
  /** The test that has to find it. */
  readonly command: string
}

function readMutant(file: string): Mutant {
  const path = join(folder, file)
  const command = /^run: (.+)$/m.exec(readFileSync(path, 'utf8'))?.[1] ?? ''
  return { name: file.replace(/\.patch$/, ''), path, command }
}

const mutants = readdirSync(folder).map(readMutant)
/** Those of such names alone are looked for. */
const wanted = new RegExp(process.env.OFFLOOP_MUTANTS ?? '')

interface Ended {
  readonly code: number | null
  readonly output: string
}

function run(line: string, cwd: string): Promise<Ended> {
  const env = {
    ...process.env,
    PATH: `${root}node_modules/.bin:${process.env.PATH}`,
    CARGO_TARGET_DIR: join(root, 'target/mutants/target'),
    NODE_OPTIONS: '',
    OFFLOOP_FAULTS: '',
  }
  const child = spawn(line, { cwd, env, shell: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}

test('every mutant can be made, and stands in the table with the test that finds it', async (t) => {
  const table = readFileSync(new URL('README.md', import.meta.url), 'utf8')
  t.true(10 <= mutants.length)
  for (const { name, path, command } of mutants) {
    t.true(table.includes(`(mutants/${name}.patch)`) && table.includes(`\`${command}\``), name)
    const { code, output } = await run(`git apply --check ${path}`, root)
    t.is(code, 0, output)
  }
  t.is(table.match(/\(mutants\//g)?.length, mutants.length)
})

/** The sources as they are, with what was built of them. */
async function plant(): Promise<void> {
  rmSync(tree, { recursive: true, force: true })
  const { output } = await run('git ls-files --cached --others --exclude-standard', root)
  for (const name of output.split('\n')) {
    if (name === '' || !existsSync(join(root, name))) continue
    mkdirSync(dirname(join(tree, name)), { recursive: true })
    cpSync(join(root, name), join(tree, name), { preserveTimestamps: true })
  }
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'))
}

function addonName(): string {
  return readdirSync(root).find((name) => /^offloop\..*\.node$/.test(name)) ?? ''
}

/** What a test of that command needs of the tree. Throws where it cannot be built: that is not how mutants are to be found. */
async function build(command: string): Promise<void> {
  const isCrate = command.startsWith('cargo test')
  const cargo = isCrate ? `${command} --no-run` : 'cargo build --quiet --profile hooks --features test-hooks'
  const lines = isCrate ? [cargo] : [cargo, 'tsc -p tsconfig.build.json']
  for (const line of lines) {
    const { code, output } = await run(line, tree)
    if (code !== 0) throw new Error(`${line}: ${output}`)
  }
  if (!isCrate) copyFileSync(join(root, 'target/mutants', LIBRARY), join(tree, addonName()))
}

async function attempt(command: string): Promise<Ended> {
  await build(command)
  return await run(command, tree)
}

/** As it was; written anew, so that it is newer than what was built of the mutant. */
function restore(patch: string): void {
  for (const [, name = ''] of readFileSync(patch, 'utf8').matchAll(/^\+\+\+ b\/(.+)$/gm)) {
    writeFileSync(join(tree, name), readFileSync(join(root, name)))
  }
}

async function find(t: ExecutionContext, { name, path, command }: Mutant): Promise<void> {
  const applied = await run(`git apply --unsafe-paths --directory=${tree} ${path}`, '/')
  t.is(applied.code, 0, applied.output)
  try {
    const { code, output } = await attempt(command)
    t.not(code, 0, `${name} is found`)
    // By a test that fails, and nothing else.
    t.regex(output, /tests? failed|test result: FAILED/, name)
  } finally {
    restore(path)
  }
}

if (isFull) {
  test.serial('every mutant is found, by a test that passes without it', async (t) => {
    t.timeout(3 * 3_600_000)
    await plant()
    const sought = mutants.filter(({ name }) => wanted.test(name))
    for (const command of new Set(sought.map((mutant) => mutant.command))) {
      const { code, output } = await attempt(command)
      t.is(code, 0, `${command}: ${output}`)
    }
    for (const mutant of sought) {
      await find(t, mutant)
      t.log(`${mutant.name}: found by ${mutant.command}`)
    }
  })
}
