/** Random values once more, where every shape is learned at once and every generated function is used. */

/* oxlint-disable import/no-unassigned-import -- the imports set constants and register tests */

import './fixtures/learn-eagerly.ts'
import './fixtures/engine-for-parts.ts'
import './json-fuzz.spec.ts'
import './json-lines.spec.ts'
