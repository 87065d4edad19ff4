/**
 * Tables of first and warm calls, with the goals beside the numbers. Pure functions of reports, whose types are in
 * `benchmark/json/report.ts`; `benchmark/json-calls.ts` prints them, `performance.mjs` writes them into docs/performance.md.
 */

/** Least plain ÷ offloop of every shape: of the first call, of the first 20, of warm calls. */
const LEAST = { first: 0.8, twenty: 0.95, warm: 0.98 }
/** A first call that takes at most this much longer meets the goal of every shape. */
const FIRST_EXTRA_MS = 1

/** Goals of shapes that must gain: first, first 20, warm on Node 20 to 24, warm on Node 26. */
const GAINS = {
  '8 rollouts of 60k tokens': [2, 5, 20, 12],
  '16 rollouts': [2, 5, 14, 8],
  '200 rollouts': [2, 5, 10, 7],
  'typed arrays': [10, 30, 60, 40],
  'one string of 31 MB': [2, 4, 20, 10],
  'chat, ASCII': [2, 4, 10, 6],
  'chat, code': [2, 4, 10, 6],
  'chat, CJK': [2, 4, 10, 6],
  '1,500 spans': [0.9, 1, 4, 2.5],
  '100 spans': [0.9, 1, 3.5, 2.5],
  '20k dates': [0.9, 2, 14, 12],
  '50k class instances': [0.9, 1, 4, 2.5],
  '20k event objects': [0.9, 1, 3.5, 2],
}
/** Goals of `encodeSync`. */
const SYNC = [0.9, 0.95, 1, 1]
const SYNC_GAINS = {
  'a chat turn of 4 KB': [0.9, 0.95, 4, 2],
  'a chat turn of 30 KB': [0.9, 0.95, 4, 2],
  'a chat turn of 60 KB': [0.9, 0.95, 4, 2],
  '1,000 integers': [0.9, 0.95, 4, 2],
  '500 floats': [0.9, 0.95, 4, 2],
}
/** First Node with the faster JSON.stringify. */
const FAST_NODE = 25

const PARTS = ['first', 'twenty', 'warm']

/** Each kind of table: its sink and baseline, its title, and what the plain way is. */
const KINDS = [
  ['bytes', 'plain', '`encode`', '`Buffer.from(JSON.stringify(value))`'],
  ['sync', 'plain', '`encodeSync`', '`Buffer.from(JSON.stringify(value))`'],
  ['response', 'plain', '`encode` and `response.end`', '`response.end(JSON.stringify(value))`'],
  ['file', 'plain', '`encode` and `fs.write`', '`fs.write(fd, JSON.stringify(value))`'],
  ['fetch', 'plain', '`encode` and `fetch`', '`fetch(url, { body: JSON.stringify(value) })`'],
  ['bytes', 'worker', '`encode`', 'a worker thread of piscina, which transfers the bytes back'],
]

/** Returns the goals of a row on a Node: `{ first, twenty, warm }`. */
export function goalsOf({ sink, baseline, shape }, node) {
  const isPlain = baseline === 'plain'
  const gains = sink === 'sync' ? (SYNC_GAINS[shape] ?? SYNC) : sink === 'bytes' && isPlain ? GAINS[shape] : undefined
  if (gains === undefined) return LEAST
  const [first, twenty, warm, warmOnFast] = gains
  return { first, twenty, warm: FAST_NODE <= Number.parseInt(node, 10) ? warmOnFast : warm }
}

/** Returns the parts of a row that miss their goals. None for a baseline that makes other bytes. */
export function missesOf(row, node) {
  const { plain, offloop } = row
  if (plain === null) return []
  const goals = goalsOf(row, node)
  const isClose = goals === LEAST && offloop.first - plain.first <= FIRST_EXTRA_MS
  return PARTS.filter((part) => plain[part] / offloop[part] < goals[part] && !(part === 'first' && isClose))
}

/** Returns the sections of a document: how many goals are met, then a table for each kind and Node. */
export function callSections(reports) {
  const sections = [['### Goals', overview(reports)].join('\n\n')]
  for (const kind of KINDS) {
    const [sink, baseline, title, plain] = kind
    for (const { node, rows } of reports) {
      const own = rows.filter((row) => row.sink === sink && row.baseline === baseline)
      if (own.length === 0) continue
      sections.push(`### ${title}, against ${plain}, Node ${node}`, tableOf(own, node))
    }
  }
  return sections
}

function overview(reports) {
  const lines = [
    ['Node', 'against', 'goals', 'met', 'missed'],
    ['---', '---', '--:', '--:', '--:'],
  ]
  for (const { node, rows } of reports) {
    for (const [sink, baseline, title, plain] of KINDS) {
      const own = rows.filter((row) => row.sink === sink && row.baseline === baseline && row.plain !== null)
      if (own.length === 0) continue
      const missed = own.reduce((count, row) => count + missesOf(row, node).length, 0)
      const all = own.length * PARTS.length
      lines.push([node, `${title}: ${plain}`, all, all - missed, missed])
    }
  }
  return lines.map(lineOf).join('\n')
}

function tableOf(rows, node) {
  const ratios = ['first', 'goal', '20', 'goal', 'warm', 'goal']
  const head = ['value', 'size', 'live MB', 'plain ms: first, 20, warm', 'offloop ms: first, 20, warm', ...ratios]
  const lines = [head, head.map((_, index) => (index === 0 ? '---' : '--:')), ...rows.map((row) => cellsOf(row, node))]
  return lines.map(lineOf).join('\n')
}

function cellsOf(row, node) {
  const { shape, size, heapMb, plain, offloop } = row
  const goals = goalsOf(row, node)
  const misses = missesOf(row, node)
  const ratios = PARTS.flatMap((part) => {
    if (plain === null) return ['other bytes', '']
    const sign = misses.includes(part) ? ' ✘' : ''
    return [`${showRatio(plain[part] / offloop[part])}${sign}`, `≥ ${goals[part]}`]
  })
  return [shape, showBytes(size), heapMb, plain === null ? '–' : showTimes(plain), showTimes(offloop), ...ratios]
}

function lineOf(cells) {
  return `| ${cells.join(' | ')} |`
}

function showTimes(times) {
  return PARTS.map((part) => showMs(times[part])).join(', ')
}

function showMs(ms) {
  return ms < 0.1 ? ms.toFixed(4) : ms.toFixed(ms < 10 ? 2 : 0)
}

function showRatio(ratio) {
  return ratio.toFixed(ratio < 10 ? 2 : 1)
}

function showBytes(size) {
  if (size < 1000) return `${size} B`
  return size < 1e6 ? `${(size / 1e3).toFixed(1)} KB` : `${(size / 1e6).toFixed(1)} MB`
}

const MARKS = ['<!-- json-calls: begin -->', '<!-- json-calls: end -->']

/** Returns the text with the sections of the reports between its marks. */
export function withCallTables(text, reports) {
  const [begin, end] = MARKS.map((mark) => text.indexOf(mark))
  if (begin === -1 || end < begin) throw new Error(`the document has no ${MARKS.join(' and ')}`)
  const origins = reports.map(({ node, day, commit, machine }) => `Node ${node}: ${day}, ${commit}, ${machine}.`)
  const body = [origins.join('\n'), ...callSections(reports)].join('\n\n')
  return `${text.slice(0, begin)}${MARKS[0]}\n\n${body}\n\n${text.slice(end)}`
}

/**
 * Returns a report that has the rows of `before`, and those of `after` in place of rows of the same measurement. It names
 * the commits of both.
 */
export function mergedReport(before, after) {
  const keyOf = ({ sink, baseline, shape, heapMb }) => [sink, baseline, shape, heapMb].join('\n')
  const rows = new Map([...before.rows, ...after.rows].map((row) => [keyOf(row), row]))
  const commits = new Set([...before.commit.split(', '), after.commit])
  return { ...after, commit: [...commits].join(', '), rows: [...rows.values()] }
}
