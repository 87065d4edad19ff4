/** What success has survived. */

import { FileDurability } from '../native.ts'
import { choose, tableOf } from '../options.ts'

/**
 * What success has survived. 'none': nothing (page cache). 'data': a crash of the machine: fdatasync, and the names of a newly created file
 * and its folders, synced once on open. 'full': fsync (F_FULLFSYNC on macOS). Directory sync is skipped on Windows.
 */
export type Durability = 'none' | 'data' | 'full'

const DURABILITIES = tableOf({
  none: FileDurability.None,
  data: FileDurability.Data,
  full: FileDurability.Full,
})

export function readDurability(value: unknown, byDefault: FileDurability): FileDurability {
  return choose('options.durability', value, DURABILITIES, byDefault)
}

/** Of files: the bits that `chmod` knows. */
export const MOST_MODE = 0o7777
