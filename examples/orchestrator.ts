/**
 * A training step with offloop: rollouts of several turns against an inference server that returns routed experts, each
 * appended to a log when it is over, and saved as a sample of the training batch. `orchestrator-plain.ts` does the same without.
 */

import { join } from 'node:path'
import { concatExperts, configure, openJsonl, saveFile, type ExpertsTurn, type RoutedExperts } from 'offloop'
import { createClient } from 'offloop/http'
import { createDeferQueue } from 'offloop/kit'
import { Transcript, type Choice, type Step, type Task } from './transcript.ts'

// Once in a process: the memory of all turns of a step is kept for the next step.
configure({ maxIdleBytes: 1024 * 2 ** 20 })
const client = createClient()
// A sample is as large as all its turns together, so few are made at once.
const samples = createDeferQueue({ concurrency: 2 })

export async function runStep({ url, folder, tasks }: Step): Promise<void> {
  const log = await openJsonl(join(folder, 'rollouts.jsonl'))
  try {
    await Promise.all(
      tasks.map(async (task) => {
        const { transcript, turns } = await rollOut(url, task)
        await log.append(transcript.row)
        await samples.defer(() => saveSample(join(folder, `sample-${task.id}.msgpack`), transcript, turns))
      }),
    )
  } finally {
    await log.close()
  }
}

/** Memory that is handed over serves later results: that of the turns, then that of the sample. */
async function saveSample(path: string, transcript: Transcript, turns: readonly ExpertsTurn[]): Promise<void> {
  const experts = await concatExperts(turns, { tokens: transcript.length, transfer: true })
  await saveFile(path, transcript.sample(experts), { format: 'msgpack', transfer: true })
}

async function rollOut(url: string, task: Task): Promise<{ transcript: Transcript; turns: readonly ExpertsTurn[] }> {
  const transcript = new Transcript(task)
  const turns: ExpertsTurn[] = []
  for (const prompt of task.prompts) {
    const { start, request } = transcript.ask(prompt)
    const choice = await complete(url, request, start)
    transcript.answer(choice)
    turns.push({ experts: choice.routed_experts, start, tokens: transcript.length })
  }
  return { transcript, turns }
}

interface Completion {
  readonly choices: readonly [Choice & { readonly routed_experts: RoutedExperts }]
}

async function complete(url: string, request: object, start: number): Promise<Completion['choices'][0]> {
  const { choices } = await client.post<Completion>(url, request, {
    lift: { '/choices/*/routed_experts': { experts: { start } }, '/choices/*/token_ids': 'int32' },
  })
  return choices[0]
}
