/** Commands, one after the other, their output shown as it comes. Without dependencies: setup runs before they are installed. */

import { spawn } from 'node:child_process'
import { fileURLToPath, pathToFileURL } from 'node:url'

export const root = fileURLToPath(new URL('../', import.meta.url))

/** Whether Node was started with this module, and no other imports it. */
export function isStarted({ url }) {
  return url === pathToFileURL(process.argv[1] ?? '').href
}

/** Runs a command line in the project's folder; resolves to its exit code and what it printed. */
export function run(line, { quiet = false, env = process.env } = {}) {
  const child = spawn(line, { cwd: root, env, shell: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const [stream, target] of [
    [child.stdout, process.stdout],
    [child.stderr, process.stderr],
  ]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
      if (!quiet) target.write(text)
    })
  }
  return new Promise((resolve) => child.on('close', (code) => resolve({ code: code ?? 1, output })))
}

/** Local binaries are found without npm around. */
export const env = {
  ...process.env,
  PATH: `${root}node_modules/.bin${process.platform === 'win32' ? ';' : ':'}${process.env.PATH}`,
}
