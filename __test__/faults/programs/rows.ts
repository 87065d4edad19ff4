/** What children write and parents look for: rows and files that follow from their numbers alone. */

const LEAST_FACTOR = 0x9e3779b1
const SIZES = [0, 0, 3, 10, 30, 100, 300, 1000, 4000, 4096, 20_000, 200_000] as const
const LARGE_SIZES = [100_000, 200_000] as const
/** One run of so many has large rows alone: writing those takes long. */
const LARGE_RUNS = 7

/** A row, the `index`th of its `run`: of 10 bytes to 200 KB, with characters of one byte, of two, and of an escape. */
export function rowOf(run: number, index: number): readonly unknown[] {
  const draw = draws(run * 1_000_003 + index)
  const sizes = run % LARGE_RUNS === 0 ? LARGE_SIZES : SIZES
  const size = sizes[draw(sizes.length)] ?? 0
  if (size === 0) return [run, index]
  const unit = ['x', 'é', '\n', 'row '][draw(4)] ?? ''
  return [run, index, unit.repeat(Math.ceil((size * (1 + draw(100))) / 100 / new TextEncoder().encode(unit).length))]
}

export function rowText(run: number, index: number): string {
  return JSON.stringify(rowOf(run, index))
}

/** Whole numbers below what is asked for, the same for the same seed. */
export function draws(seed: number): (below: number) => number {
  let state = (seed + 1) | 0
  return (below) => {
    state = (state + LEAST_FACTOR) | 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) % below
  }
}

export const FORMATS = ['json', 'bytes', 'jsonl'] as const

/** The form of a file's `version`th content, and how many rows it has. */
export function shapeOf(version: number): { readonly format: (typeof FORMATS)[number]; readonly rows: number } {
  const draw = draws(version)
  return { format: FORMATS[draw(FORMATS.length)] ?? 'json', rows: 1 + draw(40) }
}

/** What a file has in it whose `version`th content was saved. */
export function contentOf(version: number): string {
  const { format, rows } = shapeOf(version)
  const texts = Array.from({ length: rows }, (_, index) => rowText(version, index))
  return format === 'jsonl' ? texts.map((text) => `${text}\n`).join('') : `[${texts.join(',')}]`
}
