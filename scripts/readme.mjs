/** The table of a step in README.md. Pure functions of text; `picture.mjs` calls them. */

const ROWS = [
  ['event loop blocked, in all', 'blockedMs'],
  ['lag of the event loop, p50', 'lagP50Ms'],
  ['lag of the event loop, p99', 'lagP99Ms'],
  ['lag of the event loop, max', 'lagMaxMs'],
  ['answers to health checks, p99', 'pingP99Ms'],
  ['time of the step', 'stepMs'],
  ['CPU time', 'cpuMs'],
  ['peak resident memory', 'peakBytes'],
]
/** The table that begins with this, up to the empty line behind it. */
const TABLE = /^\| `npm run bench -- step`(?:.*\n)+?(?=\n)/m

/** The text with the figures of a report, as `npm start -- --json` prints it, in the place of its table of a step. */
export function withStepTable(text, { node, heapMb, second }) {
  if (!TABLE.test(text)) throw new Error('README.md has no table of `npm run bench -- step`')
  const major = node.slice(1).split('.')[0]
  const { plain, offloop, ratios } = second
  const lines = [
    `| \`npm run bench -- step\`, Node ${major}, ${heapMb} MB live | plain | offloop | plain ÷ offloop |`,
    '| --- | --: | --: | --: |',
    ...ROWS.map(([name, key]) => {
      const show = key === 'peakBytes' ? showBytes : showMs
      return `| ${name} | ${show(plain[key])} | ${show(offloop[key])} | ${showRatio(ratios[key])} |`
    }),
  ]
  return text.replace(TABLE, () => `${lines.join('\n')}\n`)
}

function showMs(ms) {
  if (ms < 10) return `${ms.toFixed(1)} ms`
  return ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(2)} s`
}

function showBytes(bytes) {
  return `${(bytes / 1e6).toFixed(0)} MB`
}

function showRatio(ratio) {
  return ratio === null ? '–' : `${ratio.toFixed(ratio < 10 ? 1 : 0)}×`
}
