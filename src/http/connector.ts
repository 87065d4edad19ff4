/** Opens connections for undici's Agent, on the JS thread: undici's own connector, with a read buffer for each. `client.ts` calls it. */

import type { Socket } from 'node:net'
import type { Agent, buildConnector } from 'undici'
import { Connection } from './connection.ts'
import { undici } from './undici.ts'

type Connector = (options: buildConnector.Options, callback: buildConnector.Callback) => Socket

/** The options of undici's Agent that are about connections, as its Pool reads them. */
interface ConnectionOptions {
  readonly tls?: object
  readonly maxCachedSessions?: unknown
  readonly socketPath?: unknown
  readonly connectTimeout?: unknown
  readonly autoSelectFamily?: unknown
  readonly autoSelectFamilyAttemptTimeout?: unknown
}

/** Makes the `connect` of an Agent. `connect` has the options that the caller gave by that name. */
export function createConnect(
  agent: Readonly<Agent.Options>,
  connect: object | undefined,
  readBytes: number,
): buildConnector.connector {
  /** The connection whose socket is being made. */
  let opening: Connection | undefined
  const open = connectorOf(agent, connect, {
    // A socket reads these properties when it is made, and is an ordinary one if they are undefined.
    get buffer() {
      return opening?.nextBuffer
    },
    get callback() {
      return opening?.receive
    },
  })
  return (options, callback) => {
    const connection = new Connection(readBytes)
    opening = connection
    try {
      connection.attach(open(options, callback))
    } finally {
      opening = undefined
    }
  }
}

function connectorOf(agent: Readonly<Agent.Options>, connect: object | undefined, onread: object): Connector {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- undici's types lack some of the options that its Pool reads
  const given = agent as ConnectionOptions
  const { tls, maxCachedSessions, socketPath, connectTimeout, autoSelectFamily } = given
  const { autoSelectFamilyAttemptTimeout } = given
  const family = typeof autoSelectFamily === 'boolean' ? { autoSelectFamily, autoSelectFamilyAttemptTimeout } : {}
  const options = { ...tls, maxCachedSessions, socketPath, timeout: connectTimeout, ...family, ...connect }
  // An HTTP/2 session would keep the chunks, so only HTTP/1.1 is offered.
  const all: object = { ...options, allowH2: false, onread }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- undici's connectors return their socket
  return undici.buildConnector(all) as unknown as Connector
}
