/**
 * `offloop/http` against servers that others use: nginx, lighttpd, and uvicorn with FastAPI. `scripts/packages.mjs` installs the
 * first two, a cached environment has the third; one line says what is missing.
 */

import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, connect, type AddressInfo } from 'node:net'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import test from 'ava'
import { python } from '../scripts/python.mjs'
import { createClient } from '../src/http/index.ts'
import { OffloopError } from '../src/index.ts'
import { bodyOf, until } from './fixtures/http.ts'

const folder = mkdtempSync(join(tmpdir(), 'offloop-servers-'))
// A server may run as another user.
chmodSync(folder, 0o755)
const children: ChildProcess[] = []
test.after.always(async () => {
  for (const child of children) {
    // nginx ends its workers then.
    child.kill('SIGTERM')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  rmSync(folder, { recursive: true, force: true })
})

const env = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin:/sbin` }
const SIZES = [0, 1, 70_000, 5_000_003, 23_000_001]
const VALUE = { rows: Array.from({ length: 60_000 }, (_, index) => ({ index, text: 'ä'.repeat(index % 40) })) }
const JSON_TEXT = JSON.stringify(VALUE)

for (const size of SIZES) writeFileSync(join(folder, `${size}.bin`), bodyOf(size))
writeFileSync(join(folder, 'value.json'), JSON_TEXT)
writeFileSync(join(folder, 'value.json.gz'), gzipSync(JSON_TEXT))

function has(command: string): boolean {
  const isThere = spawnSync('sh', ['-c', `command -v ${command}`], { env }).status === 0
  if (!isThere) console.log(`left out: tests against ${command} (node scripts/packages.mjs installs it on Debian)`)
  return isThere
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Starts a server and waits until it answers. */
async function start(command: string, args: readonly string[], port: number): Promise<string> {
  let said = ''
  const child = spawn(command, args, { env, cwd: folder })
  children.push(child)
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  let isUp = false
  let isTrying = false
  await until(`${command} answers on its port`, () => {
    if (child.exitCode !== null) throw new Error(`${command} ended: ${said}`)
    if (isUp || isTrying) return isUp
    isTrying = true
    const socket = connect(port, '127.0.0.1', () => {
      isUp = true
      socket.destroy()
    })
    socket.on('close', () => (isTrying = false)).on('error', () => undefined)
    return false
  })
  return `http://127.0.0.1:${port}`
}

const STATIC: Readonly<
  Record<string, (port: number) => readonly [file: string, config: string, args: readonly string[]]>
> = {
  nginx: (port) => [
    'nginx.conf',
    `daemon off; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
events {}
http {
  access_log off; root ${folder}; gzip_types application/json; gzip_min_length 10;
  client_body_temp_path ${folder}/a; proxy_temp_path ${folder}/b; fastcgi_temp_path ${folder}/c;
  uwsgi_temp_path ${folder}/d; scgi_temp_path ${folder}/e;
  types { application/json json; application/octet-stream bin; }
  server { listen 127.0.0.1:${port}; gzip on; gzip_proxied any; location /gone { return 410 "gone"; } }
}`,
    ['-p', folder, '-c', join(folder, 'nginx.conf')],
  ],
  lighttpd: (port) => [
    'lighttpd.conf',
    `server.document-root = "${folder}"
server.port = ${port}
server.bind = "127.0.0.1"
server.modules = ("mod_access")
url.access-deny = ("gone")
mimetype.assign = (".json" => "application/json", ".bin" => "application/octet-stream")`,
    ['-D', '-f', join(folder, 'lighttpd.conf')],
  ],
}

for (const [name, configOf] of Object.entries(STATIC)) {
  const tested = has(name) ? test : test.skip
  tested(`${name}: files, ranges, compression, HEAD, statuses, connections`, async (t) => {
    const port = await freePort()
    const [file, config, args] = configOf(port)
    writeFileSync(join(folder, file), config)
    const url = await start(name, args, port)
    const client = createClient({ agent: { connections: 4 } })
    const get = async (path: string, headers = {}, method = 'GET') => client.request(url + path, { headers, method })
    for (const size of SIZES) {
      const { status, headers, body } = await get(`/${size}.bin`)
      t.is(status, 200)
      t.is(headers['content-length'], String(size))
      t.true((await body.bytes()).equals(bodyOf(size)))
    }
    const all = await Promise.all(Array.from({ length: 16 }, async () => (await get('/5000003.bin')).body.bytes()))
    for (const bytes of all) t.true(bytes.equals(bodyOf(5_000_003)))
    const part = await get('/5000003.bin', { range: 'bytes=1000-2000000' })
    t.is(part.status, 206)
    t.true((await part.body.bytes()).equals(bodyOf(5_000_003).subarray(1000, 2_000_001)))
    // Only nginx compresses without a further package.
    const { headers: fields, body: value } = await get('/value.json', { 'accept-encoding': 'gzip' })
    t.is(fields['content-encoding'], name === 'nginx' ? 'gzip' : undefined)
    t.deepEqual(await value.parse(), VALUE)
    const head = await get('/23000001.bin', {}, 'HEAD')
    t.is(head.headers['content-length'], '23000001')
    t.is((await head.body.bytes()).length, 0)
    const missing = await get('/missing')
    t.is(missing.status, 404)
    t.regex(await missing.body.text(), /404/)
    const { etag = '' } = (await get('/value.json', {}, 'HEAD')).headers
    const same = await get('/value.json', { 'if-none-match': etag })
    t.is(same.status, 304)
    t.is(await same.body.text(), '')
    const error = await t.throwsAsync(client.post(`${url}/gone`, {}), { instanceOf: OffloopError })
    t.is(error?.code, 'ERR_OFFLOOP_STATUS')
    await client.close()
  })
}

const interpreter = python('servers')
const withUvicorn = interpreter === undefined ? test.skip : test

withUvicorn('uvicorn with FastAPI: large JSON both ways, streams, errors', async (t) => {
  const port = await freePort()
  const app = fileURLToPath(new URL('fixtures', import.meta.url))
  const args = ['-m', 'uvicorn', 'http-server:app', '--app-dir', app, '--port', String(port), '--log-level', 'critical']
  const url = await start(interpreter ?? '', args, port)
  const client = createClient()
  t.deepEqual(await client.post(`${url}/echo`, VALUE), VALUE)
  t.deepEqual(await client.post(`${url}/json`, VALUE), { received: VALUE })
  const large = bodyOf(23_000_001)
  const { body } = await client.request(`${url}/echo`, { body: large })
  t.true((await body.bytes()).equals(large))
  const pieces = await (await client.request(`${url}/stream/1000`)).body.parse()
  t.deepEqual(
    pieces,
    Array.from({ length: 1000 }, () => 'x'.repeat(5000)),
  )
  await Promise.all(Array.from({ length: 20 }, async () => t.deepEqual(await client.post(`${url}/echo`, [1]), [1])))
  t.is((await client.request(`${url}/fail`)).status, 500)
  const wrong = await t.throwsAsync(client.post(`${url}/json`, [1]), { instanceOf: OffloopError })
  t.is(wrong?.status, 422)
  t.regex(String(Reflect.get(Object(wrong?.cause), 'body')), /detail/)
  await client.close()
})
