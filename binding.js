/**
 * Loads the addon when the package is imported: the file that `OFFLOOP_ADDON` names, else the file of a checkout, else the
 * package of this platform. `src/runtime/native.ts` imports it. `binding.d.ts`, which is generated, has the types.
 */

const EXPECTED = '0.1.0'
const PACKAGE = '@offloop/binding'
/** Platforms that have a package. The folders of `npm` bear their names. */
const PLATFORMS = new Set([
  'linux-x64-gnu',
  'linux-arm64-gnu',
  'linux-x64-musl',
  'linux-arm64-musl',
  'linux-arm-gnueabihf',
  'linux-s390x-gnu',
  'linux-ppc64le-gnu',
  'linux-riscv64-gnu',
  'darwin-arm64',
  'darwin-x64',
  'win32-x64-msvc',
  'win32-arm64-msvc',
  'freebsd-x64',
])

// No import by name, and no names that are written out: bundlers would follow them. A bundle in CommonJS has no
// `import.meta.url`.
const { openSync, readSync, closeSync } = process.getBuiltinModule('node:fs')
const path = process.getBuiltinModule('node:path')
const load = process.getBuiltinModule('node:module').createRequire(import.meta.url ?? __filename)

// The addon's exports, by name: ES modules need them written out. A test compares them with the addon.
export const {
  Base64Alphabet,
  Base64Decoder,
  Base64Mode,
  bindSmallEncoder,
  closeLogFile,
  copyInput,
  copyRows,
  countRows,
  decodeBase64,
  decodeBase64InPlace,
  decodeBase64Part,
  decodeBase64Sync,
  decodeBase64TextSync,
  dropSaved,
  encodeBase64,
  encodeBase64Sync,
  encodeTape,
  encodeTapeSync,
  EventStream,
  ExpertsFill,
  ExpertsFormat,
  ExpertsTurns,
  fillBody,
  fillBodySync,
  fillExperts,
  fillExpertsSync,
  idleBytes,
  InputBytes,
  joinPieces,
  joinPiecesSync,
  Lane,
  Layout,
  Lexicon,
  LiftPointers,
  LogFile,
  maxIdleBytes,
  nextRows,
  openLogFile,
  Pieces,
  poolStats,
  prewarm,
  PrintedPage,
  printPage,
  printPageSync,
  printSegments,
  printSegmentsSync,
  RawJsonBytes,
  releaseIdle,
  releaseSlot,
  repairFile,
  reportIdle,
  reportUsed,
  reserveSlot,
  RowsReader,
  saveBytes,
  SavedFile,
  saveTape,
  scanBody,
  scanBodySync,
  scanExperts,
  scanExpertsSync,
  ScannedBody,
  setConcurrency,
  setMaxIdleBytes,
  SmallOutput,
  SnapshotParts,
  Stop,
  takeOverflow,
  takeOverflowSync,
  TapeParts,
  TapeSegment,
  TaskProgress,
  trimHeap,
  VERSION,
  writeGroup,
  writeGroupSync,
} = findAddon()

function findAddon() {
  const { OFFLOOP_ADDON } = process.env
  const platforms = platformsOf()
  const names =
    OFFLOOP_ADDON === undefined
      ? platforms.flatMap((platform) => [`./offloop.${platform}.node`, `${PACKAGE}-${platform}`])
      : [path.resolve(OFFLOOP_ADDON)]
  const attempts = []
  for (const name of names) {
    try {
      return loadAddon(name)
    } catch (error) {
      attempts.push({ name, error })
    }
  }
  throw noAddon(platforms, attempts)
}

/** Loads a file, or a package, that is the addon of this version. */
function loadAddon(name) {
  // Anything else would run as JavaScript.
  if (!name.startsWith(PACKAGE) && !name.endsWith('.node')) throw new Error('not a .node file')
  const addon = load(name)
  // JavaScript and addon share layouts of memory.
  if (addon.VERSION !== EXPECTED) throw new Error(`version ${addon.VERSION ?? 'unknown'}, not ${EXPECTED}`)
  return addon
}

/** Returns the names of this platform's addons. Linux has one for each C library; the one that Node uses comes first. */
function platformsOf() {
  const { platform } = process
  // Node names 64-bit PowerPC without its byte order.
  const arch = process.arch === 'ppc64' ? 'ppc64le' : process.arch
  if (platform === 'win32') return [`win32-${arch}-msvc`]
  if (platform !== 'linux') return [`${platform}-${arch}`]
  const libraries = arch === 'arm' ? ['gnueabihf', 'musleabihf'] : ['gnu', 'musl']
  return (usesMusl() ? libraries.toReversed() : libraries).map((library) => `linux-${arch}-${library}`)
}

/** Whether Node was linked with musl: the head of its file then names musl's loader. */
function usesMusl() {
  try {
    const file = openSync(process.execPath)
    const head = Buffer.alloc(4096)
    readSync(file, head, 0, head.length, 0)
    closeSync(file)
    return head.includes('/ld-musl-')
  } catch {
    // The file may not be read, with --permission for one. Both addons are tried anyway.
    return false
  }
}

function noAddon(platforms, attempts) {
  const [platform] = platforms
  const lines = attempts.map(({ name, error }) => `  ${name}: ${reasonOf(error)}`)
  const message = [
    `offloop ${EXPECTED} has no addon for ${describe(platform)}.`,
    ...lines,
    adviceFor(platforms, attempts),
  ]
  return Object.assign(new Error(message.join('\n'), { cause: attempts[0]?.error }), { code: 'ERR_OFFLOOP_NO_ADDON' })
}

function describe(platform) {
  const library = process.platform === 'linux' ? `, ${platform.includes('musl') ? 'musl' : 'glibc'}` : ''
  return `${platform} (${process.platform}, ${process.arch}${library}, Node ${process.versions.node})`
}

/** Returns one line that says why an addon was not loaded. */
function reasonOf(error) {
  if (error.code === 'MODULE_NOT_FOUND') return 'not there'
  return String(error.message).split('\n', 1)[0]
}

function adviceFor(platforms, attempts) {
  const isDisabled = attempts.some(({ error }) => error.code === 'ERR_DLOPEN_DISABLED')
  if (isDisabled)
    return 'Node may load no addons: start it with --allow-addons beside --permission, or without --no-addons.'
  if (process.env.OFFLOOP_ADDON !== undefined)
    return 'OFFLOOP_ADDON names this file: correct the variable, or unset it.'
  const known = platforms.find((platform) => PLATFORMS.has(platform))
  if (known === undefined)
    return 'No package is published for this platform: build offloop from its sources, with Rust and `npm run build:all`.'
  return `Install ${PACKAGE}-${known}@${EXPECTED}. These leave it out: --omit=optional, a lockfile that was written on another platform, and npm before 11.3 with such a lockfile. In a bundle, keep offloop external.`
}
