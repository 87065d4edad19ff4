/** Runs of a benchmark: on which Nodes, with which arguments. `bench.mjs` runs them, `picture.mjs` the one of the headline. */

/** Nodes that benchmarks compare. */
export const NODES = ['20.20.2', '24.21.0', '26.10.0']
/** The Node of the picture and of README's numbers, which have the default heap. */
export const HEADLINE_NODE = '24.21.0'

/** MB of live objects that the step is run with. */
const HEAPS = [0, 256, 1024]
/** Pages of runs that are not the headline's, relative to the project. */
const PAGES = 'target/step'
const SMALL_STEP = ['--rollouts', '4', '--turns', '2', '--tokens', '2000']

/**
 * Each run is `{ version, args, label }`: a Node of `NODES`, or undefined for the one that runs this; arguments of the
 * benchmark; and what its section in the results says beside Node's version. The step always runs on all Nodes, unless quick.
 */
export function runsOf(noun, { isQuick = false, areAllNodes = false } = {}) {
  const isStep = noun === 'step'
  const versions = areAllNodes || (isStep && !isQuick) ? NODES : [undefined]
  if (!isStep) return versions.map((version) => ({ version, args: [], label: '' }))
  return versions.flatMap((version) => HEAPS.map((heap) => stepRun(version, heap, isQuick)))
}

function stepRun(version, heap, isQuick) {
  const args = ['--heap', String(heap), '--out', PAGES, ...(isQuick ? SMALL_STEP : [])]
  return { version, args, label: `, ${heap} MB live` }
}

/** The command line of a benchmark. */
export function lineOf(node, noun, args = []) {
  return [`"${node}" --expose-gc --import @oxc-node/core/register benchmark/${noun}.ts`, ...args].join(' ')
}
