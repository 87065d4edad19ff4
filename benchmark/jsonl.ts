/** JSONL files: rows appended, whole files saved, rows read. `npm run bench -- jsonl` */

import { readingCase, reading } from './jsonl/read.ts'
import { savingCases, saving } from './jsonl/save.ts'
import { writingCases, writing } from './jsonl/write.ts'
import { besideHeap, report } from './measure.ts'

const sections = [...(await writing()), ...(await saving()), ...(await reading())]
report('JSONL files', [...sections, ...(await besideHeap([...writingCases(), ...savingCases(), readingCase()]))])
