/** Checks of prebuilt addons: their size, folders of the machine that built them, and the glibc they need. */

const MOST_BYTES = 1_600_000
/** Instructions of s390x are longer. */
const MOST_BYTES_OF = { 'linux-s390x-gnu': 1_900_000 }

/** Returns one line for each fault of an addon. */
export function faultsOf({ name, glibc }, bytes, folders) {
  const faults = []
  const most = MOST_BYTES_OF[name] ?? MOST_BYTES
  if (most < bytes.length) faults.push(`${bytes.length} bytes, at most ${most}`)
  for (const folder of folders) {
    if (bytes.includes(folder)) faults.push(`names the folder ${folder}`)
  }
  const newest = glibc === undefined ? undefined : newestGlibc(bytes)
  if (newest !== undefined && isNewer(newest, glibc)) faults.push(`needs glibc ${newest}, promises ${glibc}`)
  return faults
}

/** Returns the newest glibc whose symbols an addon imports. */
export function newestGlibc(bytes) {
  const versions = [...bytes.toString('latin1').matchAll(/GLIBC_(\d+\.\d+)/g)].map(([, version]) => version)
  return versions.reduce(
    (newest, version) => (newest !== undefined && isNewer(newest, version) ? newest : version),
    undefined,
  )
}

function isNewer(version, than) {
  const [major, minor] = version.split('.').map(Number)
  const [majorThan, minorThan] = than.split('.').map(Number)
  return major === majorThan ? minorThan < minor : majorThan < major
}
