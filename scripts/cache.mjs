/** Where things go that are made once for many checkouts. */

import { homedir } from 'node:os'
import { join } from 'node:path'

export function cacheFolder(name) {
  const base = process.env.OFFLOOP_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'offloop')
  return join(base, name)
}
