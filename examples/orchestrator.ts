/**
 * A training step with offloop: rollouts of several turns against an inference server that returns routed experts, each
 * appended to a log when it is over, and saved as a sample of the training batch. `orchestrator-plain.ts` does the same without.
 */

import { join } from 'node:path'
import { concatExperts, configure, openJsonl, saveFile, type ExpertsTurn, type RoutedExperts } from 'offloop'
import { createClient } from 'offloop/http'
import { Transcript, type Choice, type Step, type Task } from './transcript.ts'

// Once in a process: what one rollout's experts leave behind is kept for those of the next.
configure({ maxIdleBytes: 512 * 2 ** 20 })
const client = createClient()

export async function runStep({ url, folder, tasks }: Step): Promise<void> {
  const log = await openJsonl(join(folder, 'rollouts.jsonl'))
  try {
    await Promise.all(
      tasks.map(async (task) => {
        const { transcript, experts } = await rollOut(url, task)
        await log.append(transcript.row)
        // The file takes the experts: their memory serves later results.
        const options = { format: 'msgpack', transfer: true } as const
        await saveFile(join(folder, `sample-${task.id}.msgpack`), transcript.sample(experts), options)
      }),
    )
  } finally {
    await log.close()
  }
}

async function rollOut(url: string, task: Task): Promise<{ transcript: Transcript; experts: RoutedExperts }> {
  const transcript = new Transcript(task)
  const turns: ExpertsTurn[] = []
  for (const prompt of task.prompts) {
    const { start, request } = transcript.ask(prompt)
    const choice = await complete(url, request, start)
    transcript.answer(choice)
    turns.push({ experts: choice.routed_experts, start, tokens: transcript.length })
  }
  return { transcript, experts: await concatExperts(turns, { tokens: transcript.length, transfer: true }) }
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
