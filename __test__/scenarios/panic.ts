import { decodeBase64, OffloopError, stats } from '../../src/index.ts'
import { unwrap } from '../../src/runtime/native.ts'
import { run } from '../../src/runtime/pool.ts'
import { loadHooks } from '../fixtures/hooks.ts'
import { expect, play } from '../fixtures/scenario.ts'
import { noise } from '../fixtures/text.ts'

const hooks = loadHooks()

function isInternal(error: unknown, message: string): boolean {
  return error instanceof OffloopError && error.code === 'ERR_OFFLOOP_INTERNAL' && error.message.includes(message)
}

async function task(): Promise<void> {
  const bytes = noise(3_000_000)
  const text = Buffer.from(bytes.toString('base64'))
  const others = Array.from({ length: 10 }, () => decodeBase64(text))
  const panics = Array.from({ length: 10 }, async (_, index) =>
    unwrap(await run(() => hooks.panicTask(`bug ${index}`))),
  )
  const more = Array.from({ length: 10 }, () => decodeBase64(text))
  for (const [index, result] of (await Promise.allSettled(panics)).entries()) {
    expect(result.status === 'rejected' && isInternal(result.reason, `bug ${index}`), 'the panic as an error')
  }
  for (const result of await Promise.all([...others, ...more])) expect(result.equals(bytes), 'the other tasks to go on')
  expect(stats().running === 0, 'the slots to be given back')
}

function sync(): void {
  let caught: unknown
  try {
    unwrap(hooks.panicSync('here'))
  } catch (error) {
    caught = error
  }
  expect(isInternal(caught, 'here'), 'the panic as an error')
}

await play({ task, sync })
