/** How much is tried: some in `npm test`, all in `npm run test:faults`. */

export const isFull: boolean = process.env.OFFLOOP_FAULTS === 'full'

/** The same numbers are drawn for the same seed; it is told where a test fails. */
export const seed: number = Number(process.env.OFFLOOP_SEED ?? Math.trunc(Math.random() * 1e6))
