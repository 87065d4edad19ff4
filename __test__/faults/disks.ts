/** Disks in files, and file systems on them. */

import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface FileSystem {
  readonly name: string
  readonly make: readonly [string, ...string[]]
  readonly size: number
  /** Of its mount. */
  readonly options: string
}

const EXT4 = {
  make: ['mkfs.ext4', '-q', '-F', '-b', '4096', '-E', 'nodiscard,lazy_itable_init=0'],
  size: 16 << 20,
} as const

export const FILE_SYSTEMS: Readonly<Record<'ext4' | 'writeback' | 'xfs', FileSystem>> = {
  ext4: { name: 'ext4', ...EXT4, options: 'data=ordered' },
  writeback: { name: 'ext4 with data=writeback', ...EXT4, options: 'data=writeback' },
  xfs: { name: 'XFS', make: ['mkfs.xfs', '-q', '-f', '-K'], size: 300 << 20, options: 'defaults' },
}

const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` }

function run(command: string, argv: readonly string[]): string {
  return execFileSync(command, argv, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** Why there are none here; undefined where there are. */
export function noDisks(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'only root can mount disks'
  if (!existsSync('/dev/loop-control')) return 'no loop devices on this system'
  for (const tool of ['mkfs.ext4', 'mkfs.xfs', 'xfs_io']) {
    if (spawnSync(tool, ['-V'], { env }).error !== undefined) return `no ${tool} on this system`
  }
  return undefined
}

export function makeDisk(path: string, { make: [command, ...flags], size }: FileSystem): void {
  writeFileSync(path, '')
  truncateSync(path, size)
  run(command, [...flags, path])
}

export function format(device: string, { make: [command, ...flags] }: FileSystem): void {
  run(command, [...flags, device])
}

/** A loop device over a file. */
export function attach(path: string): string {
  return run('losetup', ['--find', '--show', path]).trim()
}

export function detach(device: string): void {
  run('losetup', ['--detach', device])
}

export function mount(path: string, folder: string, options: string): void {
  run('mount', ['-o', path.startsWith('/dev/') ? options : `loop,${options}`, path, folder])
}

export function unmount(folder: string): void {
  run('umount', [folder])
}

/** The power of a file system is cut: what it had not yet given to its disk is gone. */
export function cutPower(folder: string): void {
  run('xfs_io', ['-x', '-c', 'shutdown', folder])
}

/** A folder for disks and mounts, gone when `use` ends however it does, with what is mounted there. */
export async function withFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'offloop-disks-'))
  try {
    await use(folder)
  } finally {
    for (const name of ['mounted', 'disk']) spawnSync('umount', ['--lazy', join(folder, name)], { env })
    rmSync(folder, { recursive: true, force: true })
  }
}
