/** Stringifies values in a worker thread of piscina, which the benchmark of calls compares with. Returns the bytes by transfer. */

import { move } from 'piscina'

const encoder = new TextEncoder()

/** `areArrays`: typed arrays are written as arrays of numbers. */
export default function encodeInWorker({ value, areArrays }) {
  return move(encoder.encode(JSON.stringify(value, areArrays ? asArray : undefined)))
}

function asArray(_, value) {
  return ArrayBuffer.isView(value) ? Array.from(value) : value
}
