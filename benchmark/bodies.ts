/** In a worker: makes response-sized base64 bodies and hands them over, as a network would. */

import { parentPort, workerData } from 'node:worker_threads'

const { size }: { size: number } = workerData
const bytes = new Uint8Array((size / 4) * 3)
for (let index = 0; index < bytes.length; index += 1) bytes[index] = Math.imul(index, 0x9e37_79b1) >>> 24
const text = Buffer.from(Buffer.from(bytes.buffer).toString('base64'), 'latin1')

parentPort?.on('message', () => {
  const body = Buffer.allocUnsafeSlow(text.length)
  text.copy(body)
  parentPort?.postMessage(body, [body.buffer])
})
