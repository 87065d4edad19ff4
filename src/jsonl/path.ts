/** Names of files, as Node's fs takes them. */

import { fileURLToPath, type URL } from 'node:url'
import { invalidType, invalidValue } from '../errors.ts'

export function readPath(path: unknown): string {
  const name = isUrl(path) ? fileURLToPath(path) : path
  if (typeof name !== 'string') throw invalidType('path', 'of type string or an instance of URL', path)
  if (name.includes('\0')) throw invalidValue('path', 'must be a string or URL without null bytes', name)
  return name
}

/** By shape, as Node does it: URLs of other realms are URLs too. */
function isUrl(value: unknown): value is URL {
  return typeof value === 'object' && value !== null && 'href' in value && 'protocol' in value
}
