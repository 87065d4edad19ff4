/** Reads names of files as Node's fs does. Runs on the JS thread; every function that takes a path calls it. */

import { fileURLToPath, type URL } from 'node:url'
import { invalidType, invalidValue } from '../runtime/errors.ts'

export function readPath(path: unknown): string {
  const name = isUrl(path) ? fileURLToPath(path) : path
  if (typeof name !== 'string') throw invalidType('path', 'of type string or an instance of URL', path)
  if (name.includes('\0')) throw invalidValue('path', 'must be a string or URL without null bytes', name)
  return name
}

/** Recognizes URLs by their properties, as Node does: URLs of other realms are URLs too. */
function isUrl(value: unknown): value is URL {
  return typeof value === 'object' && value !== null && 'href' in value && 'protocol' in value
}
