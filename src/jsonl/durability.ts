/** Reads the options `durability` and `mode`. Runs on the JS thread; `openJsonl`, `repair` and `saveFile` call it. */

import { choose, tableOf } from '../runtime/options.ts'

/**
 * What success survives. `'none'`: nothing (page cache). `'data'`: a crash of the machine, by fdatasync; the names of a new file and of its
 * folders are synced once, on open. `'full'`: fsync (F_FULLFSYNC on macOS). Directories are not synced on Windows.
 */
export type Durability = 'none' | 'data' | 'full'

const DURABILITIES = tableOf<Durability>({ none: 'none', data: 'data', full: 'full' })

export function readDurability(value: unknown, byDefault: Durability): Durability {
  return choose('options.durability', value, DURABILITIES, byDefault)
}

/** Largest mode of a file: all bits that `chmod` knows. */
export const MOST_MODE = 0o7777
