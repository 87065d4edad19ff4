/** The specs of JSON once more, where every shape is learned at once and every generated function is used. */

/* oxlint-disable import/no-unassigned-import -- the imports set constants and register tests */

import './fixtures/learn-eagerly.ts'
import './json-exact.spec.ts'
import './json-options.spec.ts'
import './json.spec.ts'
