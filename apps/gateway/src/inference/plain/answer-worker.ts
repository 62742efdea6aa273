import { Transfer, worker, workerEmit } from 'workerpool';
import type { ReadResult } from '../../upstream/exchange/plain-answer';
import type { RequestedAnswer } from './plain-output';
import { type PlainReading, readPlain } from './plain-reading';
import { toBytes } from './plain-response';
import { yieldToMain } from '../workers/worker-priority';

type Fitting = Exclude<PlainReading, { kind: 'refused' }>;

/** A reading as plain data, which can be sent between threads. */
export type AnswerRead =
  | Exclude<ReadResult<PlainReading>, { kind: 'usable' }>
  | { kind: 'refused'; reason: string }
  | (Omit<Fitting, 'begun' | 'output'> & {
      begun: { bytes: Uint8Array; used: number };
      output: { estimate: number | null; tokens: number; calls: number; reasons: boolean };
    });

/** Nothing else runs in this thread. */
const NO_TURNS = { take: () => Promise.resolve(true) };

/** Reads an answer and counts its output. What was parsed stays here. */
async function read(raw: Uint8Array, asked: RequestedAnswer): Promise<AnswerRead | object> {
  workerEmit('begun');
  const result = await readPlain(Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength), asked, NO_TURNS);
  if (result.kind !== 'usable') return result;
  const { answer } = result;
  if (answer.kind === 'refused') return answer;
  const begun = toBytes(answer.begun as string);
  const { calls, reasons } = answer.output;
  const output = { estimate: answer.output.estimate(), tokens: answer.output.tokens(), calls, reasons };
  const transferred: AnswerRead = { ...answer, begun, output };
  return new Transfer(transferred, [begun.bytes.buffer]);
}

yieldToMain();
worker({ read });
