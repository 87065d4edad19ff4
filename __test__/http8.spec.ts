/** The tests of `offloop/http` with undici 8, on Nodes that it supports. */

import module from 'node:module'
import test from 'ava'

const registerHooks: unknown = Reflect.get(module, 'registerHooks')
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (typeof registerHooks === 'function' && (22 < major || 19 <= minor)) {
  const resolve = (specifier: string, context: unknown, next: (...args: unknown[]) => object): object =>
    next(specifier === 'undici' ? 'undici8' : specifier, context)
  Reflect.apply(registerHooks, module, [{ resolve }])
  await import('./http.spec.ts')
} else {
  test('undici 8 needs Node 22.19 or newer', (t) => t.pass())
}
