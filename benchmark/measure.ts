/** What the benchmarks share: busy time of the loop, tables, and results that say where they are from. */

import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { Bench } from 'tinybench'

export interface Contender {
  readonly name: string
  /** Made anew before each run, outside what is measured. */
  readonly prepare?: () => unknown
  readonly run: (prepared: unknown) => unknown
}

export interface Measured {
  readonly name: string
  /** Medians of one call. */
  readonly busyMs: number
  readonly wallMs: number
  readonly cpuMs: number
}

export interface Effort {
  /** Contenders take turns this many times. */
  readonly rounds: number
  /** Runs of a contender in its turn. */
  readonly runs: number
  /** Calls within a run, for calls that take microseconds. */
  readonly calls: number
}

/** Lets the contenders take turns, so that a slow moment of the machine hits all of them. */
export async function compare(contenders: readonly Contender[], { rounds, runs, calls }: Effort): Promise<Measured[]> {
  const samples = contenders.map(() => ({ busy: [0].slice(1), wall: [0].slice(1), cpu: [0].slice(1) }))
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, contender] of contenders.entries()) {
      const sample = samples[index]
      if (sample === undefined) continue
      const bench = new Bench({ iterations: runs, time: 0, warmup: round === 0, warmupIterations: 3, warmupTime: 0 })
      let prepared: unknown[] = []
      bench.add(
        contender.name,
        async () => {
          const cpu = process.cpuUsage()
          const start = performance.now()
          const before = performance.eventLoopUtilization()
          for (const input of prepared) await contender.run(input)
          sample.busy.push(performance.eventLoopUtilization(before).active / calls)
          sample.wall.push((performance.now() - start) / calls)
          const { user, system } = process.cpuUsage(cpu)
          sample.cpu.push((user + system) / 1000 / calls)
        },
        {
          beforeEach: () => {
            prepared = Array.from({ length: calls }, () => contender.prepare?.())
          },
        },
      )
      await bench.run()
      for (const task of bench.tasks) if (task.result.state === 'errored') throw task.result.error
      await sleep(1)
    }
  }
  return contenders.map(({ name }, index) => {
    const { busy = [], wall = [], cpu = [] } = samples[index] ?? {}
    return { name, busyMs: median(busy), wallMs: median(wall), cpuMs: median(cpu) }
  })
}

export function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN
}

export function table(rows: readonly (readonly string[])[]): string {
  const [head = [], ...body] = rows
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...body.map(line)].join('\n')
}

/** Prints a report and keeps it in `benchmark/results`, one file for each major of Node. */
export function report(noun: string, title: string, sections: readonly string[]): void {
  const [major] = process.versions.node.split('.')
  const [processor] = cpus()
  const machine = `${processor?.model.trim()}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform} ${process.arch}`
  const head = `# ${title}\n\n${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${revision()}\n${machine}`
  const text = `${[head, ...sections].join('\n\n')}\n`
  const folder = new URL('./results/', import.meta.url)
  mkdirSync(folder, { recursive: true })
  writeFileSync(new URL(`${noun}-node${major}.md`, folder), text)
  console.log(text)
}

function revision(): string {
  try {
    return `commit ${execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()}`
  } catch {
    return 'no commit'
  }
}
