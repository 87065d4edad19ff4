/** Messages of a measured process and its receiver. `sinks.ts` and `receiver.ts` import it. */

/** Path of requests whose answer is the SHA-256 of the body. */
export const HASH_PATH = '/hash'

export interface GetOrder {
  readonly port: number
  readonly isHashed: boolean
}
