import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import test from 'ava'
import * as offloop from '../src/index.ts'
import * as http from '../src/http/index.ts'
import * as kit from '../src/kit/index.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const { version, dependencies } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

/** In a process without loader or flags, as a user has it. */
function evaluate(code: string, type: 'module' | 'commonjs'): string {
  return execFileSync(process.execPath, [`--input-type=${type}`, '-e', code], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: 60_000,
  })
}

test('the exports are what has been built', (t) => {
  t.deepEqual(Object.keys(offloop).toSorted(), [
    'OffloopError',
    'RawJson',
    'capture',
    'concatExperts',
    'configure',
    'createEncoder',
    'decodeBase64',
    'decodeExperts',
    'encode',
    'encodeBase64',
    'encodeLines',
    'encodeMsgpack',
    'encodeSync',
    'openJsonl',
    'parse',
    'parseEvents',
    'rawJson',
    'readJsonl',
    'release',
    'repair',
    'saveFile',
    'split',
    'stats',
    'version',
  ])
  t.deepEqual(Object.keys(kit).toSorted(), [
    'createBatcher',
    'createDeferQueue',
    'createRolloutStore',
    'keepTrimmed',
    'monitorLoop',
    'trimMemory',
  ])
  t.deepEqual(Object.keys(http), ['createClient'])
  t.is(offloop.version, version)
  t.is(dependencies, undefined)
})

test('the built package is imported by its name, all entries', (t) => {
  const code = `import { decodeBase64 } from 'offloop'; import * as kit from 'offloop/kit'
    import { createClient } from 'offloop/http'
    console.log((await decodeBase64('QUJD')).toString(), typeof kit.monitorLoop, typeof createClient)`
  t.is(evaluate(code, 'module'), 'ABC function function\n')
})

test('the built package can be required', (t) => {
  const code = `require('offloop').decodeBase64('QUJD').then((bytes) => console.log(bytes.toString(), typeof require('offloop/kit').monitorLoop))`
  t.is(evaluate(code, 'commonjs').trim().split('\n').at(-1), 'ABC function')
})

test('importing it keeps no process alive', (t) => {
  // A timer or a handle would keep the process from its end, and `evaluate` would throw.
  const code = `await import('offloop'); await import('offloop/kit'); await import('offloop/http')
    process.on('exit', () => console.log('ended'))`
  t.is(evaluate(code, 'module'), 'ended\n')
})

test('nothing else of it can be imported', (t) => {
  const resolve = createRequire(import.meta.url).resolve
  t.throws(() => resolve('offloop/binding.js'), { code: 'ERR_PACKAGE_PATH_NOT_EXPORTED' })
})

test('each entry is one file, what they share is in others, and every source has its declarations', (t) => {
  const namesIn = (folder: string, end: RegExp): string[] =>
    readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
      .filter((path) => end.test(path))
      .map((path) => path.replace(end, ''))
      .toSorted()
  t.deepEqual(namesIn('dist', /\.d\.ts$/), namesIn('src', /\.ts$/))
  const scripts = namesIn('dist', /\.js$/)
  const entries = ['cli/cli', 'http/index', 'index', 'kit/index']
  t.deepEqual(
    scripts.filter((name) => !name.startsWith('shared-')),
    entries,
  )
  t.true(scripts.length <= entries.length + 6)
  t.deepEqual(namesIn('dist', /\.js\.map$/), scripts)
})

test('entries share their code: an error of one is an instance of the class of another', (t) => {
  const code = `import { OffloopError } from 'offloop'; import { createDeferQueue } from 'offloop/kit'
    const queue = createDeferQueue()
    await queue[Symbol.asyncDispose]()
    await queue.defer(() => {}).catch((error) => console.log(error instanceof OffloopError, error.code))`
  t.is(evaluate(code, 'module'), 'true ERR_OFFLOOP_CLOSED\n')
})
