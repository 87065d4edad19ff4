/** The page of a step: two timelines in one scale, the table, and what was measured where. */

import { sizeOf } from '../../src/cli/bar.ts'
import { compare, headOf, longestMs, rowsOf, showMs, type Result, type Run } from './figures.ts'
import type { Way } from './orchestrator.ts'

/** One file, without scripts, and without anything that it would have to load. */
export function pageOf(result: Result, origin: string): string {
  const { sizes, bytes, heapMb, second } = result
  const { plain, offloop } = second
  const scale = scaleOf([plain, offloop])
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>offloop: what a training step does to the event loop</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>One training step, and how long the event loop stood still</h1>
<p class="lead">${sizes.rollouts} rollouts of ${sizes.turns} turns, ${sizeOf(bytes)} of responses with routed experts: read, decoded, concatenated, logged, and saved as a batch, beside ${heapMb} MB of other live objects, by a process that has run one such step before. Each line shows how long something that came in at that moment had to wait for the loop: a health check, a token, a timer.</p>
${timeline('plain', plain, scale)}
${timeline('offloop', offloop, scale)}
<table>
<caption>The same step in numbers</caption>
<thead><tr>${headOf(result)
    .map((name) => `<th scope="col">${escape(name)}</th>`)
    .join('')}</tr></thead>
<tbody>
${rowsOf(compare(second)).map(rowOf).join('\n')}
</tbody>
</table>
</main>
<footer>
${origin
  .split('\n')
  .map((line) => `<p>${escape(line)}</p>`)
  .join('\n')}
<p>Plain is what one writes without offloop: response.json(), Buffer.from, JSON.stringify, fs/promises, msgpackr. Loop lag is how late a timer of 10 ms came, blocked the sum of what was later than 10 ms; a ping is one of 100 HTTP requests a second from another process. Reproduce it with <code>npm start</code>.</p>
</footer>
</body>
</html>
`
}

const NAMES: Readonly<Record<Way, string>> = { plain: 'Plain', offloop: 'With offloop' }
/** Of a plot, in its own units. */
const WIDTH = 1000
const HEIGHT = 100
/** Of a plot, in pixels: what is above it, it, and what is below. */
const ABOVE = 22
const TALL = 130
const BELOW = 24

interface Scale {
  readonly timeMs: number
  readonly lagMs: number
  readonly timeTicks: readonly number[]
  readonly lagTicks: readonly number[]
}

function scaleOf(runs: readonly Run[]): Scale {
  const timeMs = Math.max(...runs.map(({ samples, stepMs }) => Math.max(stepMs, samples.at(-1)?.at ?? 0)))
  const most = Math.max(...runs.map(longestMs), 1)
  const step = stepFor(most, 3)
  const lagMs = Math.ceil(most / step) * step
  return { timeMs, lagMs, timeTicks: ticks(stepFor(timeMs, 5), timeMs), lagTicks: ticks(step, lagMs) }
}

/** A round number of which at most so many are in a range. */
function stepFor(range: number, count: number): number {
  const power = 10 ** Math.floor(Math.log10(range / count))
  return power * ([1, 2, 5, 10].find((factor) => range / (factor * power) <= count) ?? 10)
}

function ticks(step: number, end: number): number[] {
  return Array.from({ length: Math.floor(end / step + 1e-9) }, (_, index) => (index + 1) * step)
}

function timeline(way: Way, run: Run, scale: Scale): string {
  const { timeMs, lagMs, timeTicks, lagTicks } = scale
  const longest = showMs(longestMs(run))
  const seconds = showMs(run.stepMs)
  const bottom = ABOVE + TALL
  const across = (ms: number): string => `${((ms / timeMs) * 100).toFixed(3)}%`
  const up = (ms: number): string => (bottom - (ms / lagMs) * TALL).toFixed(1)
  const ends = run.stepMs / timeMs
  const grid = lagTicks.map(
    (ms) =>
      `<line x1="0" x2="100%" y1="${up(ms)}" y2="${up(ms)}"/><text x="0" y="${up(ms)}" dy="-4">${showTick(ms)}</text>`,
  )
  const times = timeTicks
    .filter((ms) => ms < timeMs * 0.97)
    .map((ms) => `<text x="${across(ms)}" y="${bottom + 17}" text-anchor="middle">${showTick(ms)}</text>`)
  return `<section class="${way}">
<h2>${NAMES[way]} <span>at most ${longest}, done after ${seconds}</span></h2>
<svg role="img" aria-labelledby="${way}-title ${way}-desc" width="100%" height="${bottom + BELOW}">
<title id="${way}-title">${NAMES[way]}: how long the event loop made what came in wait</title>
<desc id="${way}-desc">A line over ${seconds}, the time of the step. Its highest point is ${longest}. Both lines are drawn in the same scale, up to ${showTick(lagMs)}.</desc>
<g class="grid" aria-hidden="true">${grid.join('')}<line class="axis" x1="0" x2="100%" y1="${bottom}" y2="${bottom}"/><text x="0" y="${bottom + 17}">0 s</text>${times.join('')}</g>
<svg x="0" y="${ABOVE}" width="100%" height="${TALL}" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" overflow="visible"><path class="lag" d="${lineOf(run, scale)}"/></svg>
<line class="end" aria-hidden="true" x1="${(ends * 100).toFixed(3)}%" x2="${(ends * 100).toFixed(3)}%" y1="${ABOVE}" y2="${bottom}"/>
</svg>
</section>`
}

/** What comes when the loop is held first waits for all of the hold, what comes at its end not at all. */
function lineOf({ samples, stepMs }: Run, { timeMs, lagMs }: Scale): string {
  const x = (ms: number): string => ((Math.max(0, ms) / timeMs) * WIDTH).toFixed(2)
  const y = (ms: number): string => (HEIGHT - (ms / lagMs) * HEIGHT).toFixed(2)
  const points = samples
    .filter(({ at, lag }) => at - lag <= stepMs)
    .map(({ at, lag }) => `L${x(at - lag)} ${HEIGHT}L${x(at - lag)} ${y(lag)}L${x(at)} ${HEIGHT}`)
  return `M0 ${HEIGHT}${points.join('')}`
}

function showTick(ms: number): string {
  return ms < 1000 ? `${Number(ms.toPrecision(3))} ms` : `${Number((ms / 1000).toPrecision(3))} s`
}

function rowOf([name = '', ...cells]: readonly string[]): string {
  return `<tr><th scope="row">${escape(name)}</th>${cells.map((cell) => `<td>${escape(cell)}</td>`).join('')}</tr>`
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

const STYLE = `
:root { --paper: #fff; --ink: #1c1f23; --quiet: #5a626c; --rule: #e2e5e9; --plain: #b3360f; --offloop: #0b6e63; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171a; --ink: #e8eaed; --quiet: #a4acb6; --rule: #2e343b; --plain: #ff8a5c; --offloop: #4fd1c0; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
h1 { margin: 0 0 .6rem; font-size: clamp(1.4rem, 1.1rem + 1.6vw, 2rem); line-height: 1.2; letter-spacing: -.01em; text-wrap: balance; }
.lead { margin: 0 0 1.75rem; max-width: 44rem; color: var(--quiet); }
section { margin: 0 0 1.5rem; }
h2 { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 .75rem; margin: 0; font-size: 1.05rem; line-height: 1.4; }
h2 span { color: var(--quiet); font-weight: 400; font-size: .95rem; font-variant-numeric: tabular-nums; }
.plain h2 { color: var(--plain); } .offloop h2 { color: var(--offloop); }
svg { display: block; overflow: visible; }
.grid line { stroke: var(--rule); } .grid .axis { stroke: var(--quiet); }
.grid text { fill: var(--quiet); font-size: .75rem; font-variant-numeric: tabular-nums; }
.lag { stroke-width: 1.5; stroke-linejoin: round; vector-effect: non-scaling-stroke; fill-opacity: .28; }
.plain .lag { stroke: var(--plain); fill: var(--plain); } .offloop .lag { stroke: var(--offloop); fill: var(--offloop); }
.end { stroke: var(--quiet); stroke-dasharray: 3 3; }
table { width: 100%; margin-top: 2rem; border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { padding-bottom: .5rem; font-weight: 600; text-align: left; }
th, td { padding: .42rem 0 .42rem .9rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
tbody th, thead th:first-child { padding-left: 0; text-align: left; }
tbody th { font-weight: 400; text-align: left; }
thead th { color: var(--quiet); font-weight: 600; font-size: .9rem; white-space: normal; vertical-align: bottom; }
thead th:nth-child(2), tbody td:nth-child(2) { color: var(--plain); } thead th:nth-child(3), tbody td:nth-child(3) { color: var(--offloop); }
footer { margin-top: 2rem; color: var(--quiet); font-size: .85rem; } footer p { margin: 0 0 .3rem; }
code { font: .95em ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", monospace; }
@media (max-width: 30rem) { body { padding: 1.25rem 1rem 2rem; } table { font-size: .875rem; } th, td { padding-left: .5rem; } }
@media (max-width: 22rem) { tbody th { white-space: normal; } }
`
