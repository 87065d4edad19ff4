/** Results of `offloop scan`: reads what tasks counted, and makes objects for `--json` and tables for terminals. */

/** Counts of a file, and a table of them. */
export interface ScanReport {
  readonly counts: RowTotals & Readonly<Record<string, unknown>>
  readonly table: string
}

/** Rows of a file. */
interface RowTotals {
  readonly bytes: number
  readonly rows: number
  readonly badRows: number
  readonly bad: Readonly<Record<string, number>>
  readonly biggest: { readonly offset: number; readonly length: number } | null
}

type NamedCount = readonly [name: string, count: number]

/** Counts as `Census::describe` in `crates/jsonl/src/census.rs` writes them. */
type CensusText = readonly [
  bytes: number,
  rows: number,
  biggest: readonly [offset: number, length: number] | null,
  bad: readonly NamedCount[],
  fields: readonly NamedCount[],
]

/** Counts of values as `FieldTree::describe` in `crates/jsonl/src/fields.rs` writes them. */
type ValuesText = readonly [rows: number, types: readonly number[], min: number, max: number, sum: number]
type FieldText = readonly [pointer: string, ...ValuesText]

/** Returns the rows of a file and the keys at the top of them, the most frequent first. */
export function countsOf(text: string): ScanReport {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon wrote it
  const census = JSON.parse(text) as CensusText
  const fields = census[4].toSorted(([, a], [, b]) => b - a)
  const lines = fields.map(([name, count]): Cells => [`  ${JSON.stringify(name)}`, String(count)])
  return {
    counts: { ...totalsOf(census), fields: Object.fromEntries(fields) },
    table: tableOf([...linesOf(census), ...lines]),
  }
}

/** Returns the rows of a file, and for each field how many rows have it, the types and the sizes of its values. */
export function statsOf(text: string): ScanReport {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the addon wrote it
  const [census, lines, rest] = JSON.parse(text) as [CensusText, readonly FieldText[], ValuesText]
  const fields = lines.map(([pointer, ...values]) => Object.assign({ pointer }, statsOfValues(values)))
  const others = rest[0] === 0 ? null : statsOfValues(rest)
  const rows = [...fields, ...(others === null ? [] : [{ ...others, pointer: null }])]
  const heading: Cells = ['field', 'rows', 'values', 'types', 'min', 'mean', 'max', 'bytes']
  return {
    counts: { ...totalsOf(census), stats: { fields, others } },
    table: `${tableOf(linesOf(census))}\n${tableOf([heading, ...rows.map((field) => cellsOf(field, census[1]))])}`,
  }
}

function totalsOf([bytes, rows, biggest, bad]: CensusText): RowTotals {
  const badRows = bad.reduce((sum, [, count]) => sum + count, 0)
  const place = biggest === null ? null : { offset: biggest[0], length: biggest[1] }
  return { bytes, rows, badRows, bad: Object.fromEntries(bad), biggest: place }
}

const TYPES = ['null', 'boolean', 'integer', 'float', 'string', 'array', 'object'] as const

/** Statistics of the values of a field. Sizes are bytes of JSON. */
interface ValueStats {
  /** Rows that have the field. */
  readonly rows: number
  readonly values: number
  /** Number of values of each type that occurs. */
  readonly types: Readonly<Partial<Record<(typeof TYPES)[number], number>>>
  readonly bytes: { readonly min: number; readonly mean: number; readonly max: number; readonly sum: number }
}

function statsOfValues([rows, counts, min, max, sum]: ValuesText): ValueStats {
  const values = counts.reduce((total, count) => total + count, 0)
  const types = TYPES.map((type, index) => [type, counts[index] ?? 0] as const).filter(([, count]) => count !== 0)
  return { rows, values, types: Object.fromEntries(types), bytes: { min, mean: sum / values, max, sum } }
}

// ───────────────────────────── tables ─────────────────────────────

type Cells = readonly string[]

function linesOf(census: CensusText): Cells[] {
  const [bytes, rows, biggest, bad] = census
  const { badRows } = totalsOf(census)
  const causes = bad.map(([name, count]) => `${count} ${name}`).join(', ')
  return [
    ['rows', String(rows)],
    ['bad rows', badRows === 0 ? '0' : `${badRows} (${causes})`],
    ['bytes', String(bytes)],
    ['biggest row', biggest === null ? '-' : `${biggest[1]} bytes, at byte ${biggest[0]}`],
  ]
}

function cellsOf({ pointer, rows, values, types, bytes }: ValueStats & { pointer: string | null }, all: number): Cells {
  const name = pointer === null ? '(others)' : JSON.stringify(pointer)
  const kinds = Object.entries(types).map(([type, count]) => (count === values ? type : `${type} ${count}`))
  const share = `${rows} (${Math.floor((100 * rows) / all)} %)`
  return [
    name,
    share,
    String(values),
    kinds.join(', '),
    ...[bytes.min, Math.round(bytes.mean), bytes.max, bytes.sum].map(String),
  ]
}

/** Returns lines of cells, each column as wide as its widest cell. */
function tableOf(lines: readonly Cells[]): string {
  const widths: number[] = []
  for (const line of lines)
    for (const [index, cell] of line.entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length)
  return lines
    .map(
      (line) =>
        `${line
          .map((cell, index) => cell.padEnd(widths[index] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}
