/** Progress bar on a terminal: bytes, rows a second, time left. Writes nothing to a pipe. The command line and the benchmark use it. */

const PERIOD_MS = 100
const WIDTH = 24
const CLEAR_LINE = '\r\u001B[K'
const DIM = '\u001B[2m'
const PLAIN = '\u001B[0m'

export interface BarProgress {
  readonly bytes: number
  readonly total: number
  readonly rows?: number | undefined
}

export class Bar {
  readonly #stream: NodeJS.WriteStream
  readonly #name: string
  readonly #hasColor: boolean
  readonly #since = performance.now()
  #shown = 0

  constructor(stream: NodeJS.WriteStream, name: string, hasColor: boolean) {
    this.#stream = stream
    this.#name = name
    this.#hasColor = hasColor
  }

  show(progress: BarProgress): void {
    const now = performance.now()
    if (!this.#stream.isTTY || now - this.#shown < PERIOD_MS) return
    this.#shown = now
    const line = barLine(this.#name, progress, (now - this.#since) / 1000)
    const text = line.slice(0, Math.max(0, this.#stream.columns - 1))
    this.#stream.write(`${CLEAR_LINE}${this.#hasColor ? `${DIM}${text}${PLAIN}` : text}`)
  }

  clear(): void {
    if (this.#shown !== 0) this.#stream.write(CLEAR_LINE)
  }
}

export function barLine(name: string, { bytes, total, rows }: BarProgress, seconds: number): string {
  const share = total === 0 ? 1 : bytes / total
  const filled = Math.round(share * WIDTH)
  const bar = `${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)}`
  const speed = rows === undefined ? `${sizeOf(bytes / seconds)}/s` : `${Math.round(rows / seconds)} rows/s`
  const left = share === 0 ? '' : `, ${durationOf((seconds / share) * (1 - share))} left`
  return `${name} ${bar} ${Math.floor(share * 100)} % of ${sizeOf(total)}, ${speed}${left}`
}

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'] as const

export function sizeOf(bytes: number): string {
  let [value, unit] = [bytes, 0]
  while (1000 <= value && unit < UNITS.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${unit === 0 ? Math.round(value) : value.toFixed(value < 10 ? 2 : 1)} ${UNITS[unit] ?? 'B'}`
}

function durationOf(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`
}
