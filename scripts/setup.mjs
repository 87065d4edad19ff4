/**
 * What `npm start` and `npm test` do first: see `make.mjs`. In the syntax of Node 12, so that one that is too old comes as
 * far as the sentence that says so; the rest is loaded behind it.
 */

const [major, minor] = process.versions.node.split('.').map(Number)
if ((major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22) {
  void import('./make.mjs')
} else {
  console.error(`Node ${process.versions.node} is too old: install Node 20.19, 22.12 or newer.`)
  process.exit(1)
}
