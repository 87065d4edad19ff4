/** JSONL files: rows appended, whole files saved, rows read. `npm run bench -- jsonl` */

import { reading } from './jsonl/read.ts'
import { saving } from './jsonl/save.ts'
import { writing } from './jsonl/write.ts'
import { report } from './measure.ts'

report('JSONL files', [...(await writing()), ...(await saving()), ...(await reading())])
