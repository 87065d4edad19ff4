/** What a benchmark's results are of. */

import { execFileSync } from 'node:child_process'
import { cpus, totalmem } from 'node:os'

/** The day, what was measured (a version) and the commit; and the machine. Two lines. */
export function origin(what) {
  return `${day()}, ${what}, ${revision()}\n${machine()}`
}

export function day() {
  return new Date().toISOString().slice(0, 10)
}

export function machine() {
  const [processor] = cpus()
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`
  return [processor?.model.trim(), `${cpus().length} cores`, memory, `${process.platform} ${process.arch}`].join(', ')
}

export function revision() {
  try {
    return `commit ${execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()}`
  } catch {
    return 'no commit'
  }
}

/** Platform, processor and C library, as the names of prebuilt addons have them. */
export function triple() {
  const { platform, arch } = process
  if (platform === 'win32') return `win32-${arch}-msvc`
  if (platform !== 'linux') return `${platform}-${arch}`
  const isMusl = process.report.getReport().header.glibcVersionRuntime === undefined
  const library = `${isMusl ? 'musl' : 'gnu'}${arch === 'arm' ? 'eabihf' : ''}`
  // Node names 64-bit PowerPC without its byte order.
  return `linux-${arch === 'ppc64' ? 'ppc64le' : arch}-${library}`
}
