/**
 * A file that is a disk: mounted by FUSE, whose protocol this speaks, under a loop device. What is written to it, and when it is
 * told to make that durable, is recorded in order. It is asked by lines: `count` tells how much that is; `record` says it all.
 */

import { spawn } from 'node:child_process'
import { closeSync, openSync, read, writeFileSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { tell } from './tell.ts'

export interface Disk {
  /** The file that it is mounted over. */
  readonly path: string
  readonly size: number
  /** Where what is recorded goes. */
  readonly record: string
}

/** A write, its bytes being in the record's data from `at` on; or, without a length, a flush. */
export interface Event {
  readonly offset: number
  readonly length: number
  readonly at: number
}

const { path, size, record }: Disk = JSON.parse(process.env.OFFLOOP_ROUND ?? '')

const BLOCK = 4096
const MOST_WRITTEN = 128 * 1024
const HEADER = 40
const [GETATTR, SETATTR, OPEN, READ, WRITE, RELEASE, FSYNC, FLUSH, INIT] = [3, 4, 14, 15, 16, 18, 20, 25, 26]
const [FORGET, INTERRUPT, BATCH_FORGET] = [2, 36, 42]
const ENOSYS = 38

const blocks = new Map<number, Buffer>()
const events: Event[] = []
const data: Buffer[] = []
let dataLength = 0
const device = openSync('/dev/fuse', 'r+')

function reply(unique: bigint, body: Buffer, error = 0): void {
  const header = Buffer.alloc(16)
  header.writeUInt32LE(16 + body.length, 0)
  header.writeInt32LE(-error, 4)
  header.writeBigUInt64LE(unique, 8)
  writeSync(device, Buffer.concat([header, body]))
}

function init(): Buffer {
  const [big, pages] = [1 << 5, 1 << 22]
  const body = Buffer.alloc(64)
  body.writeUInt32LE(7, 0)
  body.writeUInt32LE(31, 4)
  body.writeUInt32LE((big | pages) >>> 0, 12)
  body.writeUInt16LE(16, 16)
  body.writeUInt16LE(12, 18)
  body.writeUInt32LE(MOST_WRITTEN, 20)
  body.writeUInt32LE(1, 24)
  body.writeUInt16LE(MOST_WRITTEN / BLOCK, 28)
  return body
}

function attributes(): Buffer {
  const [valid, attr] = [Buffer.alloc(16), Buffer.alloc(88)]
  attr.writeBigUInt64LE(1n, 0)
  attr.writeBigUInt64LE(BigInt(size), 8)
  attr.writeUInt32LE(0o100600, 60)
  attr.writeUInt32LE(1, 64)
  attr.writeUInt32LE(BLOCK, 80)
  return Buffer.concat([valid, attr])
}

function readBlocks(offset: number, length: number): Buffer {
  const end = Math.min(offset + length, size)
  const parts: Buffer[] = []
  for (let at = offset; at < end;) {
    const within = at % BLOCK
    const taken = Math.min(BLOCK - within, end - at)
    const block = blocks.get((at - within) / BLOCK) ?? Buffer.alloc(BLOCK)
    parts.push(block.subarray(within, within + taken))
    at += taken
  }
  return Buffer.concat(parts)
}

function writeBlocks(offset: number, bytes: Buffer): void {
  events.push({ offset, length: bytes.length, at: dataLength })
  data.push(Buffer.from(bytes))
  dataLength += bytes.length
  for (let done = 0; done < bytes.length;) {
    const within = (offset + done) % BLOCK
    const number = (offset + done - within) / BLOCK
    const block = Buffer.from(blocks.get(number) ?? Buffer.alloc(BLOCK))
    done += bytes.copy(block, within, done)
    blocks.set(number, block)
  }
}

/** What is answered; undefined where nobody waits for that. */
function answer(opcode: number, body: Buffer): Buffer | number | undefined {
  if (opcode === FORGET || opcode === INTERRUPT || opcode === BATCH_FORGET) return undefined
  if (opcode === INIT) return init()
  if (opcode === GETATTR || opcode === SETATTR) return attributes()
  if (opcode === OPEN) return Buffer.alloc(16)
  if (opcode === READ) return readBlocks(Number(body.readBigUInt64LE(8)), body.readUInt32LE(16))
  if (opcode === WRITE) {
    const length = body.readUInt32LE(16)
    writeBlocks(Number(body.readBigUInt64LE(8)), body.subarray(40, 40 + length))
    const written = Buffer.alloc(8)
    written.writeUInt32LE(length, 0)
    return written
  }
  if (opcode === FSYNC) events.push({ offset: 0, length: 0, at: 0 })
  return opcode === FSYNC || opcode === FLUSH || opcode === RELEASE ? Buffer.alloc(0) : ENOSYS
}

const request = Buffer.alloc(MOST_WRITTEN + BLOCK)

function serve(): void {
  read(device, request, 0, request.length, null, (error, length) => {
    if (error !== null) {
      // Unmounted; otherwise somebody has given up waiting for an answer.
      if (error.code !== 'ENODEV') serve()
      return
    }
    const body = request.subarray(HEADER, length)
    const answered = answer(request.readUInt32LE(4), body)
    const unique = request.readBigUInt64LE(8)
    if (typeof answered === 'number') reply(unique, Buffer.alloc(0), answered)
    else if (answered !== undefined) reply(unique, answered)
    serve()
  })
}

const options = 'fd=3,rootmode=100000,user_id=0,group_id=0'
const mount = spawn('mount', ['-i', '-t', 'fuse', '-o', options, 'offloop-disk', path], {
  stdio: ['ignore', 'inherit', 'inherit', device],
})
mount.on('close', (code) => tell(code === 0 ? 'mounted' : 'not mounted'))
serve()
for await (const line of createInterface(process.stdin)) {
  if (line === 'record') {
    writeFileSync(`${record}.data`, Buffer.concat(data))
    writeFileSync(record, JSON.stringify(events))
  }
  tell(String(events.length))
}
closeSync(device)
process.exit(0)
