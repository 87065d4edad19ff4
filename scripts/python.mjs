/** Virtual environments with the Python side of comparisons, and with servers, made on demand outside the repository. */

import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from './cache.mjs'

/** Packages of each environment, by its folder in the cache. */
const ENVIRONMENTS = {
  comparisons: { folder: 'python-1', packages: ['pybase64==1.5.0', 'orjson', 'msgspec', 'msgpack', 'numpy'] },
  servers: { folder: 'python-servers-1', packages: ['fastapi', 'uvicorn'] },
}

/** The path of an environment's interpreter; undefined, after one line that says why, where Python is missing. */
export function python(name = 'comparisons') {
  const { folder: kind, packages } = ENVIRONMENTS[name]
  const folder = cacheFolder(kind)
  const bin = process.platform === 'win32' ? 'Scripts' : 'bin'
  const interpreter = join(folder, bin, process.platform === 'win32' ? 'python.exe' : 'python')
  const isReady = join(folder, 'ready')
  if (existsSync(isReady)) return interpreter
  try {
    execFileSync('python3', ['-m', 'venv', folder], { stdio: 'ignore' })
    execFileSync(interpreter, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...packages], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    execFileSync(interpreter, ['-c', `open(${JSON.stringify(isReady)}, 'w').close()`])
    return interpreter
  } catch (error) {
    console.log(`left out: ${name} of Python (no python3 with venv and pip here: ${firstLine(error)})`)
    return undefined
  }
}

function firstLine(error) {
  return String(error instanceof Error ? error.message : error).split('\n')[0]
}
