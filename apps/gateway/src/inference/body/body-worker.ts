import { setPriority } from 'node:os';
import { Transfer, worker, workerEmit } from 'workerpool';
import type { InferenceKind } from '@tollgate/contracts';
import { InferenceError, type InferenceErrorCode } from '../errors';
import { type Ask, readAsk } from './ask';
import type { BodyRules } from './rules';
import { countWithinContext } from './prompt-bound';

/** An InferenceError as it goes from thread to thread. */
export interface Refusal {
  code: InferenceErrorCode;
  message: string;
  param: string | null;
}

export type BodyRead = { ask: Ask } | { refusal: Refusal };

/** Reads a body and counts its prompt; what is left of it is what goes out. */
function read(kind: InferenceKind, raw: Uint8Array, models: readonly BodyRules[]): BodyRead | object {
  workerEmit('begun');
  try {
    const ask = readAsk(kind, Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength), (id) => ruleOf(models, id));
    countWithinContext(ask, ruleOf(models, ask.model)!);
    // Handed over, not copied: it may be most of 10 MiB.
    const fields = new Uint8Array(ask.outgoing.fields);
    const outgoing = { ...ask.outgoing, fields: Buffer.from(fields.buffer) };
    return new Transfer({ ask: { ...ask, outgoing, body: null } }, [fields.buffer]);
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    return { refusal: { code: error.code, message: error.message, param: error.param } };
  }
}

function ruleOf(models: readonly BodyRules[], id: string): BodyRules | undefined {
  return models.find((model) => model.id === id);
}

/** The thread that serves everybody goes first where both want the same core. On Linux this is the calling thread's alone; elsewhere it would be the process's. */
const NICENESS = 10;
if (process.platform === 'linux') setPriority(NICENESS);
worker({ read });
