/** A training step as `orchestrator.ts` does it, without offloop: what one writes with Node and msgpackr. */

import { open, rename, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { Packr } from 'msgpackr'
import { Transcript, type Choice, type Experts, type Step, type Task } from './transcript.ts'

export async function runStep({ url, folder, tasks }: Step): Promise<void> {
  const log = await open(join(folder, 'rollouts.jsonl'), 'a')
  try {
    let appended = Promise.resolve()
    await Promise.all(
      tasks.map(async (task) => {
        const { transcript, experts } = await rollOut(url, task)
        // One after the other: large rows are several writes.
        appended = appended.then(() => append(log, transcript.row))
        await appended
        await save(join(folder, `sample-${task.id}.msgpack`), packr.pack(transcript.sample(experts)))
      }),
    )
  } finally {
    await log.close()
  }
}

const packr = new Packr({ useRecords: false })

async function append(log: FileHandle, row: object): Promise<void> {
  await log.appendFile(`${JSON.stringify(row)}\n`)
  await log.datasync()
}

/** A crash leaves the old file or the new one. */
async function save(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(`${path}.tmp`, 'w')
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}.tmp`, path)
}

async function rollOut(url: string, task: Task): Promise<{ transcript: Transcript; experts: Experts }> {
  const transcript = new Transcript(task)
  const turns: Placed[] = []
  for (const prompt of task.prompts) {
    const { start, request } = transcript.ask(prompt)
    const choice = await complete(url, request)
    transcript.answer(choice)
    turns.push({ ...decode(choice.routed_experts), start })
  }
  return { transcript, experts: concat(turns, transcript.length) }
}

interface Completion {
  readonly choices: readonly [Choice & { readonly routed_experts: Wire }]
}

async function complete(url: string, request: object): Promise<Completion['choices'][0]> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(request) })
  if (!response.ok) throw new Error(`the server answers ${response.status}`)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server sends a completion
  const { choices } = (await response.json()) as Completion
  return choices[0]
}

/** vLLM's and NeMo-RL's are strings. */
type Wire = string | { readonly data: string; readonly shape: readonly number[]; readonly dtype: string }

interface Placed extends Experts {
  readonly start: number
}

function decode(wire: Wire): Experts {
  if (typeof wire === 'object') return { ...wire, data: Buffer.from(wire.data, 'base64') }
  const [mark, dtype = '', shape = '', text = ''] = wire.split(':', 4)
  if (mark === 'nrlre1') return { data: Buffer.from(text, 'base64'), shape: shape.split('x').map(Number), dtype }
  return decodeNpy(Buffer.from(wire, 'base64'))
}

function decodeNpy(npy: Buffer): Experts {
  const end = 10 + npy.readUInt16LE(8)
  const header = npy.toString('latin1', 10, end)
  const [, descr = ''] = /'descr': '([^']+)'/.exec(header) ?? []
  const [, shape = ''] = /'shape': \(([^)]+)\)/.exec(header) ?? []
  const dtype = { '|u1': 'uint8', '<u2': 'uint16' }[descr]
  if (dtype === undefined) throw new Error(`no array of experts: ${header}`)
  return { data: npy.subarray(end), shape: shape.split(',').map(Number), dtype }
}

/** Turns by position, once a rollout is over. The last token was never forwarded: its row is zero. */
function concat(turns: readonly Placed[], tokens: number): Experts {
  const [first] = turns
  if (first === undefined) throw new Error('a rollout without turns')
  const [rows = 0, ...row] = first.shape
  const size = first.data.length / rows
  const data = Buffer.allocUnsafe(tokens * size).fill(0, (tokens - 1) * size)
  for (const turn of turns) turn.data.copy(data, turn.start * size)
  return { data, shape: [tokens, ...row], dtype: first.dtype }
}
