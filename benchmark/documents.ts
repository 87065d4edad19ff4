/** The documents of the JSON benchmark: made from seeds, the same ones on every run. */

export interface Shape {
  readonly name: string
  readonly make: () => unknown
  /** Sleep this long before each call: what caches held of the value is gone by then. @default 0 */
  readonly idleMs?: number
  /** Encoded with `encodeLines`. @default false */
  readonly lines?: boolean
}

/** In the order they are measured in. Each is made anew, from its own seed. */
export const SHAPES: readonly Shape[] = [
  { name: '8 rollouts of 60k tokens', make: () => many(8, new Random(1), tokens) },
  { name: '16 rollouts', make: () => many(16, new Random(2), (random, index) => rollout(random, index, 4)) },
  { name: '200 rollouts', make: () => rollouts(200) },
  { name: 'chat, ASCII', make: () => chat(new Random(3), 200, 8000, prose) },
  { name: 'chat, code', make: () => chat(new Random(4), 200, 8000, code) },
  { name: 'chat, CJK', make: () => chat(new Random(5), 100, 3000, cjk) },
  { name: 'chat, CJK mixed', make: () => chat(new Random(6), 100, 3500, cjkMixed) },
  { name: 'chat, emoji', make: () => chat(new Random(7), 200, 8000, emojiMixed) },
  { name: 'chat, dense emoji', make: () => chat(new Random(8), 100, 4000, emoji) },
  { name: 'one string', make: () => ({ id: 1, data: base64(new Random(9), 31_000_000) }) },
  { name: '10⁶ doubles', make: () => many(1e6, new Random(10), (random) => (random.unit() - 0.5) * 1e4) },
  { name: '10⁶ small integers', make: () => many(1e6, new Random(11), (random) => random.below(1000)) },
  { name: '1,500 spans', make: () => many(1500, new Random(12), span) },
  { name: '1,500 spans, 5 ms idle before', make: () => many(1500, new Random(12), span), idleMs: 5 },
  { name: '1,500 spans, rich attributes', make: () => many(1500, new Random(13), richSpan) },
  { name: '2·10⁴ objects with dates', make: () => many(2e4, new Random(14), dated) },
  { name: '5·10⁴ class instances', make: () => many(5e4, new Random(15), (random, id) => new Point(random, id)) },
  { name: '2·10⁵ × {a: 1}', make: () => many(2e5, new Random(16), (_, index) => ({ a: index & 7 })) },
  {
    name: '2·10⁵ short strings',
    make: () => many(2e5, new Random(17), (random, index) => random.hex(8 + (index % 24))),
  },
  { name: '4,000 dictionary-mode objects', make: () => many(4000, new Random(18), dictionary) },
  { name: '8,000 ever-new shapes', make: () => many(8000, new Random(19), (random) => unique(random, 8)) },
  { name: 'a map of 10⁵ keys', make: () => map(new Random(20), 1e5) },
  {
    name: '2·10⁴ values with toJSON',
    make: () => many(2e4, new Random(21), (random, id) => ({ id, v: new Money(random) })),
  },
  { name: '3,000 levels deep', make: () => nested(new Random(22), 3000) },
  { name: '5,000 rows of 1 KB', make: () => many(5000, new Random(23), row) },
  { name: '5,000 rows of 1 KB, encodeLines', make: () => many(5000, new Random(23), row), lines: true },
  { name: 'twitter-like', make: () => timeline(new Random(24), 150) },
  { name: 'citm-like', make: () => catalog(new Random(25), 240) },
  { name: 'one row of 1 KB', make: () => row(new Random(26), 1) },
  { name: 'one span', make: () => span(new Random(27), 1) },
  { name: 'one small object', make: () => small(new Random(28), 1) },
]

/** A value of 1 to 60 KB, as services log and send them. */
export interface SmallShape {
  readonly name: string
  readonly make: (random: Random, index: number) => unknown
}

export const SMALL_SHAPES: readonly SmallShape[] = [
  { name: 'one small object', make: small },
  { name: 'log line', make: logLine },
  { name: 'row of 1 KB', make: row },
  { name: 'span', make: span },
  { name: 'span, rich attributes', make: richSpan },
  { name: 'chat turn of 1 KB', make: (random) => ({ role: 'user', content: prose(random, 1000) }) },
  { name: 'chat turn of 4 KB, code', make: (random) => ({ role: 'assistant', content: code(random, 4000) }) },
  { name: 'chat turn of 10 KB, CJK', make: (random) => ({ role: 'user', content: cjk(random, 3400) }) },
  { name: 'chat turn of 10 KB, emoji', make: (random) => ({ role: 'user', content: emojiMixed(random, 10_000) }) },
  { name: 'chat turn of 60 KB', make: (random) => ({ role: 'user', content: prose(random, 60_000) }) },
  { name: '300 integers', make: (random) => ids(random, 300) },
  { name: '8,000 integers', make: (random) => ids(random, 8000) },
  { name: '60 doubles', make: (random) => logprobs(random, 60) },
  { name: '3,000 doubles', make: (random) => logprobs(random, 3000) },
  { name: '25 spans', make: (random) => many(25, random, span) },
]

/** Rollouts of four to six turns, 0.4 MB each. */
export function rollouts(count: number): unknown[] {
  return many(count, new Random(29), (random, index) => rollout(random, index, 4 + random.below(3)))
}

/** Mulberry32. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  /** From 0 up to 1. */
  unit(): number {
    this.#state = (this.#state + 0x6d2b_79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  below(bound: number): number {
    return Math.floor(this.unit() * bound)
  }

  of<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0]
  }

  hex(len: number): string {
    let text = ''
    while (text.length < len) {
      text += Math.floor(this.unit() * 2 ** 32)
        .toString(16)
        .padStart(8, '0')
    }
    return flat(text.slice(0, len))
  }
}

export function many<T>(count: number, random: Random, make: (random: Random, index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(random, index))
}

/** Neither rope nor slice: V8 would flatten it in the first call. */
function flat(text: string): string {
  return Buffer.from(text).toString()
}

const WORDS =
  'the of and a to in is you that it he was for on are as with his they I at be this have from or one had by word but not what all were we when your can said there use an each which she do how their if will up other about out many then them these so some her would make like him into time has look two more write go see number no way could people my than first water been call who oil its now find long down day did get come made may part'.split(
    ' ',
  )

export function prose(random: Random, len: number): string {
  let text = ''
  while (text.length < len) {
    const chance = random.unit()
    text += `${WORDS[random.below(WORDS.length)]}${chance < 0.05 ? '.\n' : chance < 0.07 ? ' "quoted" ' : ' '}`
  }
  return flat(text)
}

const LINES: readonly [string, ...string[]] = [
  'import { readFile } from "node:fs/promises"\n',
  'export async function load(path: string): Promise<Config> {\n',
  '\tconst text = await readFile(path, "utf8")\n',
  '\tif (!/^\\s*\\{/.test(text)) throw new TypeError(`no object in "${path}"\\n`)\n',
  '\tfor (const [key, value] of Object.entries(JSON.parse(text))) {\n',
  '\t\tconsole.log("%s\\t%o", key, value) // every "key"\n',
  '\t}\n',
  '\treturn { path, text }\n',
  '}\n\n',
]

function code(random: Random, len: number): string {
  let text = ''
  while (text.length < len) text += random.of(LINES)
  return flat(text)
}

function ideograph(random: Random): string {
  return String.fromCodePoint(0x4e00 + random.below(3000))
}

function cjk(random: Random, len: number): string {
  let text = ''
  while (text.length < len) text += ideograph(random)
  return flat(text)
}

const BETWEEN = [' ', ',', '.', '\n', '0', 'a'] as const

/** With 12 % of ASCII, a sixth of it newlines. */
function cjkMixed(random: Random, len: number): string {
  let text = ''
  while (text.length < len) text += random.unit() < 0.12 ? random.of(BETWEEN) : ideograph(random)
  return flat(text)
}

const EMOJI = ['😀', '🚀', '❤️', '🎉', '👍🏽', '🧪'] as const

function emoji(random: Random, len: number): string {
  let text = ''
  while (text.length < len) text += random.of(EMOJI)
  return flat(text)
}

/** English, with an emoji every hundred characters. */
function emojiMixed(random: Random, len: number): string {
  let text = ''
  while (text.length < len) text += `${prose(random, 60 + random.below(80))}${random.of(EMOJI)} `
  return flat(text)
}

function base64(random: Random, len: number): string {
  const bytes = Buffer.alloc((len / 4) * 3)
  for (let index = 0; index < bytes.length; index += 1) bytes[index] = random.unit() * 256
  return flat(bytes.toString('base64'))
}

function chat(random: Random, least: number, most: number, write: (random: Random, len: number) => string): unknown {
  return many(1000, random, (_, index) => ({
    role: index & 1 ? 'assistant' : 'user',
    content: write(random, least + random.below(most - least)),
  }))
}

const VOCABULARY = 151_936

function ids(random: Random, len: number): number[] {
  return many(len, random, () => random.below(VOCABULARY))
}

function logprobs(random: Random, len: number): number[] {
  return many(len, random, () => -random.unit() * 5)
}

function mask(len: number, value: number): number[] {
  return Array.from<number>({ length: len }).fill(value)
}

const TOKENS = 60_000

function tokens(random: Random, index: number): unknown {
  return {
    example_id: index,
    task: 'bfcl-v3',
    prompt: prose(random, 2000),
    completion: prose(random, 4000),
    prompt_ids: ids(random, TOKENS),
    // As they come from a Float32Array.
    completion_logprobs: logprobs(random, TOKENS).map(Math.fround),
    mask: mask(TOKENS, 1),
    reward: random.unit(),
    advantage: random.unit() - 0.5,
  }
}

const TURN_TOKENS = 2000

function rollout(random: Random, index: number, turns: number): unknown {
  const trajectory = many(turns, random, (_, turn) => ({
    prompt: [
      { role: 'system', content: prose(random, 800) },
      { role: 'user', content: prose(random, 2000) },
    ],
    completion: [
      {
        role: 'assistant',
        content: prose(random, 4000),
        tool_calls: [
          {
            id: `call_${index}_${turn}`,
            type: 'function',
            function: { name: 'search', arguments: flat(`{"q":"${index}"}`) },
          },
        ],
      },
    ],
    tokens: {
      prompt_ids: ids(random, TURN_TOKENS),
      completion_ids: ids(random, TURN_TOKENS),
      prompt_mask: mask(TURN_TOKENS, 0),
      completion_mask: mask(TURN_TOKENS, 1),
      completion_logprobs: logprobs(random, TURN_TOKENS),
    },
    reward: random.unit(),
    advantage: random.unit() - 0.5,
    extras: { latency_ms: random.unit() * 1000, model: 'qwen3-30b-a3b', finish_reason: 'stop' },
  }))
  return {
    example_id: index,
    task: 'bfcl-v3',
    reward: random.unit(),
    trajectory,
    metrics: { turns, tool_calls: turns, success: random.unit() < 0.5 },
    timing: { generation_ms: random.unit() * 1e5, scoring_ms: random.unit() * 100 },
    is_truncated: false,
    error: null,
  }
}

const EPOCH_MS = Date.UTC(2026, 0, 1)

function timestamp(random: Random): string {
  return new Date(EPOCH_MS + random.below(1e9)).toISOString()
}

function span(random: Random, index: number): unknown {
  return {
    id: `0190${index.toString(16).padStart(28, '0')}`,
    trace_id: `t${index >> 4}`,
    parent_id: index & 15 ? `s${index - 1}` : null,
    op_name: 'weave:///org/proj/op/predict:abc',
    started_at: timestamp(random),
    attributes: { k: 'v', env: 'prod', n: index },
    inputs: {
      self: null,
      messages: [
        { role: 'system', content: prose(random, 300) },
        { role: 'user', content: prose(random, 500) },
      ],
      temperature: 0.7,
      max_tokens: 1024,
    },
    output: {
      choices: [{ index: 0, message: { role: 'assistant', content: prose(random, 900) }, finish_reason: 'stop' }],
      usage: { prompt_tokens: random.below(1000), completion_tokens: random.below(1000), total_tokens: 1 },
    },
    summary: { latency_s: random.unit(), status: 'ok' },
  }
}

function richSpan(random: Random, index: number): unknown {
  const isFailed = index % 17 === 0
  return {
    trace_id: random.hex(32),
    span_id: random.hex(16),
    parent_span_id: index % 8 === 0 ? null : random.hex(16),
    name: random.of(['llm.call', 'tool.run', 'http.request', 'db.query']),
    kind: index % 5,
    start_time_unix_nano: String(1_700_000_000_000_000_000n + BigInt(index) * 1_000_003n),
    end_time_unix_nano: String(1_700_000_000_000_500_000n + BigInt(index) * 1_000_003n),
    duration_ms: random.unit() * 1000,
    status: { code: isFailed ? 'ERROR' : 'OK', message: isFailed ? `boom: ${index}` : undefined },
    attributes: {
      'service.name': 'api',
      'http.method': 'POST',
      'http.status_code': 200 + (index % 3),
      'llm.model': 'qwen3-30b-a3b',
      'llm.tokens.prompt': random.below(4000),
      'llm.tokens.completion': random.below(2000),
      'llm.temperature': 0.7,
      'gen_ai.prompt': prose(random, 600),
      'gen_ai.completion': prose(random, 900),
      retry: false,
      tags: ['prod', 'eu-west-1', 'canary'],
    },
    events: [
      { name: 'first_token', t: random.unit() * 1e3, attributes: { n: 1 } },
      { name: 'done', t: random.unit() * 1e3, attributes: { n: random.below(100), ok: true } },
    ],
    links: [],
    resource: { host: random.hex(12), pid: random.below(65_536) },
    dropped: 0,
    flags: 1,
    sampled: true,
    cost_usd: random.unit() / 100,
    user: { id: random.below(1e6), plan: 'pro' },
  }
}

function dated(random: Random): unknown {
  return { at: new Date(EPOCH_MS + random.below(1e9)) }
}

class Point {
  readonly id: number
  readonly x: number
  readonly name: string

  constructor(random: Random, id: number) {
    this.id = id
    this.x = random.unit()
    this.name = flat(`n${id}`)
  }
}

class Money {
  readonly amount: number
  readonly currency: string
  readonly cache = new Map<string, string>()

  constructor(random: Random) {
    this.amount = random.below(1e6)
    this.currency = random.of(['EUR', 'USD', 'JPY'])
  }

  toJSON(): unknown {
    return { amount: this.amount, currency: this.currency, kind: 'money' }
  }
}

/** Keys that no other object has. */
function unique(random: Random, keys: number): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  for (let index = 0; index < keys; index += 1) {
    object[`k${random.hex(6)}`] = index & 1 ? random.below(1000) : random.hex(8)
  }
  return object
}

function dictionary(random: Random): unknown {
  const object = unique(random, 24)
  // V8 gives up the object's hidden class.
  for (const key of Object.keys(object).slice(3, 4)) Reflect.deleteProperty(object, key)
  return object
}

function map(random: Random, keys: number): unknown {
  const object: Record<string, number> = {}
  for (let index = 0; index < keys; index += 1) object[`u${random.hex(10)}`] = index
  return object
}

function nested(random: Random, levels: number): unknown {
  let value: unknown = null
  for (let level = levels; 0 < level; level -= 1) value = { level, name: random.hex(8), child: value }
  return value
}

/** 1 KB of mixed fields. */
function row(random: Random, index: number): unknown {
  return {
    id: index,
    key: random.hex(24),
    created: timestamp(random),
    updated: timestamp(random),
    name: `user ${index}`,
    email: `${random.hex(8)}@example.com`,
    active: index % 3 === 0,
    score: random.unit() * 100,
    quantity: random.below(1000),
    tags: [random.hex(6), random.hex(6), random.hex(6)],
    address: { street: prose(random, 30), city: random.hex(9), zip: String(10_000 + random.below(80_000)), geo: null },
    note: prose(random, 500),
  }
}

function small(random: Random, id: number): unknown {
  return { id, name: random.hex(8), ok: true }
}

/** As pino writes them. */
function logLine(random: Random, index: number): unknown {
  return {
    level: random.of([20, 30, 40]),
    time: EPOCH_MS + index,
    pid: 4242,
    hostname: 'api-7d9f6c5b8-x2x4k',
    requestId: random.hex(32),
    req: {
      method: 'POST',
      url: `/v1/projects/${random.hex(8)}/calls?limit=${random.below(100)}`,
      headers: {
        host: 'api.example.com',
        'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)',
        'content-type': 'application/json',
        'content-length': String(random.below(1e5)),
        'x-forwarded-for': `10.0.${random.below(256)}.${random.below(256)}`,
        traceparent: `00-${random.hex(32)}-${random.hex(16)}-01`,
      },
      remoteAddress: '10.0.0.7',
      remotePort: 1024 + random.below(60_000),
    },
    res: { statusCode: 200, headers: { 'content-type': 'application/json; charset=utf-8' } },
    responseTime: random.unit() * 100,
    msg: `request completed: ${prose(random, 200)}`,
  }
}

/** Like a page of the Twitter API: users, entities, text in Japanese. */
function timeline(random: Random, count: number): unknown {
  return {
    statuses: many(count, random, (_, index) => ({
      ...tweet(random),
      ...(index % 3 === 0 && { retweeted_status: tweet(random) }),
    })),
    search_metadata: {
      completed_in: 0.087,
      max_id: 505_874_924_095_815_680,
      max_id_str: '505874924095815680',
      next_results: '?max_id=505874847260352512&q=%E4%B8%80&count=100&include_entities=1',
      query: '%E4%B8%80',
      count,
      since_id: 0,
    },
  }
}

function tweet(random: Random): object {
  const id = random.hex(18)
  const isReply = random.unit() < 0.2
  return {
    metadata: { result_type: 'recent', iso_language_code: 'ja' },
    created_at: 'Sun Aug 31 00:29:15 +0000 2014',
    id: 505_874_924_095_815_680 - random.below(1e9) * 1024,
    id_str: id,
    text: cjkMixed(random, 40 + random.below(80)),
    source: '<a href="http://twitter.com/download/iphone" rel="nofollow">Twitter for iPhone</a>',
    truncated: false,
    in_reply_to_status_id: null,
    in_reply_to_user_id: isReply ? random.below(2 ** 31) : null,
    in_reply_to_screen_name: isReply ? random.hex(10) : null,
    user: user(random),
    geo: null,
    coordinates: null,
    place: null,
    contributors: null,
    retweet_count: random.below(100),
    favorite_count: random.below(100),
    entities: {
      hashtags: many(random.below(3), random, () => ({ text: cjk(random, 6), indices: [3, 9] })),
      symbols: [],
      urls: many(random.below(2), random, () => link(random)),
      user_mentions: many(random.below(3), random, () => ({
        screen_name: random.hex(10),
        name: cjk(random, 5),
        id: random.below(2 ** 31),
        id_str: random.hex(10),
        indices: [0, 11],
      })),
    },
    favorited: false,
    retweeted: false,
    ...(random.unit() < 0.3 && { possibly_sensitive: false }),
    lang: 'ja',
  }
}

function user(random: Random): unknown {
  return {
    id: random.below(2 ** 31),
    id_str: random.hex(10),
    name: cjk(random, 6),
    screen_name: random.hex(10),
    location: random.unit() < 0.5 ? '' : cjkMixed(random, 10),
    description: cjkMixed(random, 60 + random.below(80)),
    url: random.unit() < 0.5 ? null : `http://t.co/${random.hex(10)}`,
    entities: { description: { urls: [] } },
    protected: false,
    followers_count: random.below(10_000),
    friends_count: random.below(10_000),
    listed_count: random.below(10),
    created_at: 'Sun Oct 27 13:18:06 +0000 2013',
    favourites_count: random.below(10_000),
    utc_offset: random.unit() < 0.5 ? null : 32_400,
    time_zone: random.unit() < 0.5 ? null : 'Tokyo',
    geo_enabled: false,
    verified: false,
    statuses_count: random.below(100_000),
    lang: 'ja',
    profile_background_color: 'C0DEED',
    profile_background_image_url: 'http://abs.twimg.com/images/themes/theme1/bg.png',
    profile_image_url: `http://pbs.twimg.com/profile_images/${random.hex(18)}/${random.hex(8)}_normal.jpeg`,
    profile_banner_url: `https://pbs.twimg.com/profile_banners/${random.hex(10)}/1409236471`,
    profile_use_background_image: true,
    default_profile: true,
    following: false,
    notifications: false,
  }
}

function link(random: Random): unknown {
  const name = random.hex(10)
  return {
    url: `http://t.co/${name}`,
    expanded_url: `http://example.jp/${name}`,
    display_url: `example.jp/${name}`,
    indices: [33, 55],
  }
}

/** Like the catalog of a theatre: objects by number, many small integers, many repeated strings. */
function catalog(random: Random, performances: number): unknown {
  const number = (): number => 138_586_341 + random.below(1e8)
  const events = many(184, random, number)
  const areas = many(20, random, number)
  const byNumber = (numbers: readonly number[], make: (id: number) => unknown): unknown =>
    Object.fromEntries(numbers.map((id) => [id, make(id)]))
  return {
    areaNames: byNumber(areas, () => prose(random, 12)),
    audienceSubCategoryNames: { '337100890': 'Abonné' },
    blockNames: {},
    events: byNumber(events, (id) => ({
      description: null,
      id,
      logo: random.unit() < 0.5 ? null : `/images/UE0AAAAACEKo${random.hex(5)}QAAAAVDSVRN`,
      name: prose(random, 25),
      subTopicIds: many(1 + random.below(3), random, () => 337_184_200 + random.below(99)),
      subjectCode: null,
      subtitle: null,
      topicIds: many(1 + random.below(3), random, () => 107_888_600 + random.below(9)),
    })),
    performances: many(performances, random, (_, index) => ({
      eventId: events[index % events.length],
      id: number(),
      logo: null,
      name: null,
      prices: many(1 + random.below(8), random, () => ({
        amount: 10_000 + random.below(20) * 500,
        audienceSubCategoryId: 337_100_890,
        seatCategoryId: 338_937_200 + random.below(99),
      })),
      seatCategories: many(1 + random.below(8), random, () => ({
        areas: many(1 + random.below(10), random, () => ({ areaId: areas[random.below(20)], blockIds: [] })),
        seatCategoryId: 338_937_200 + random.below(99),
      })),
      seatMapImage: null,
      start: EPOCH_MS + random.below(1e9),
      venueCode: 'PLEYEL_PLEYEL',
    })),
    seatCategoryNames: byNumber(many(64, random, number), () => prose(random, 12)),
    subTopicNames: byNumber(many(19, random, number), () => prose(random, 16)),
    topicNames: byNumber(many(4, random, number), () => prose(random, 16)),
    venueNames: { PLEYEL_PLEYEL: 'Salle Pleyel' },
  }
}
