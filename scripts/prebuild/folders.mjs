/** Folders of the prebuild: tools are kept in the cache, outside of the project; addons go to `artifacts`. */

import { join } from 'node:path'
import { cacheFolder } from '../cache.mjs'
import { root } from '../steps.mjs'

export const WORK = cacheFolder('prebuild-1')
/** Unpacked Debian packages: nothing is installed. */
export const DEBIAN = join(WORK, 'debian')
/** Programs that call the unpacked ones, each with its own libraries. */
export const TOOLS = join(WORK, 'tools')
/** Python's environment with zig and cargo-zigbuild. */
export const VENV = join(WORK, 'venv')
/** Node of other platforms, and C libraries it runs with. */
export const NODES = join(WORK, 'nodes')
export const ARTIFACTS = join(root, 'artifacts')
