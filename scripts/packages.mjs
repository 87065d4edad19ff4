/**
 * What tests of faults and of real HTTP servers need of the system: on Debian, as root, it is installed; elsewhere one line says what is left out.
 */

import { run } from './steps.mjs'

const PACKAGES = {
  strace: 'strace',
  mount: 'mount',
  'mkfs.ext4': 'e2fsprogs',
  'mkfs.xfs': 'xfsprogs',
  valgrind: 'valgrind',
  nginx: 'nginx',
  lighttpd: 'lighttpd',
}

if (process.platform === 'linux') await install()

async function install() {
  const missing = []
  for (const [tool, name] of Object.entries(PACKAGES)) {
    const { code } = await run(`PATH="$PATH:/usr/sbin:/sbin" command -v ${tool}`, { quiet: true })
    if (code !== 0) missing.push(name)
  }
  if (missing.length === 0) return
  const names = missing.join(' ')
  const { code: hasApt } = await run('command -v apt-get', { quiet: true })
  const isRoot = process.getuid() === 0
  if (isRoot && hasApt === 0) {
    console.log(`installing ${names} …`)
    // RUNLEVEL keeps the package from starting a server.
    const line = `RUNLEVEL=1 apt-get install --yes --no-install-recommends ${names}`
    const { code } = await run(`${line} || (apt-get update && ${line})`, { quiet: true })
    if (code === 0) return
  }
  console.log(`left out: tests that need ${names} (Debian: apt-get install ${names})`)
}
