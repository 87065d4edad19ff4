/** The tests of `offloop/http` with undici 8, on Nodes that it supports. */

import module from 'node:module'
import test from 'ava'

const registerHooks: unknown = Reflect.get(module, 'registerHooks')
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (typeof registerHooks === 'function' && (22 < major || 19 <= minor)) {
  const resolve = (specifier: string, context: unknown, next: (...args: unknown[]) => object): object =>
    next(specifier === 'undici' ? 'undici8' : specifier, context)
  Reflect.apply(registerHooks, module, [{ resolve }])
  const { undici } = await import('../src/http/undici.ts')
  const { Agent } = await import('undici8')
  await import('./http.spec.ts')
  test('undici is version 8', (t) => t.true(Object.is(undici.Agent, Agent)))
} else {
  test.skip('undici 8 needs Node 22.19 or newer', (t) => t.fail())
}
