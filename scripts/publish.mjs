/** Keeps `npm publish` from publishing the checkout, which lacks the optional dependencies: `npm run stage` makes what is published. */

console.error('The checkout is not published: run `npm run stage`, then publish the folders of artifacts/npm.')
process.exit(1)
