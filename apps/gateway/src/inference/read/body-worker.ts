import { Transfer, worker, workerEmit } from 'workerpool';
import type { InferenceKind } from '@tollgate/contracts';
import { askedFor, InferenceError, type InferenceErrorCode } from '../../inference-errors';
import { type InferenceRequest, readRequest } from '../../body/inference-request';
import type { BodyRules, PromptTokens } from '../../body/rules';
import { countPrompt, refuseLongPrompt } from '../../prompt/prompt-bound';
import { yieldToMain } from '../workers/worker-priority';

/** An InferenceError as plain data, which can be sent between threads. */
export interface Refusal {
  code: InferenceErrorCode;
  message: string;
  param: string | null;
  /** See InferenceError. */
  askedModel: string | null;
}

export type BodyRead = { request: InferenceRequest } | { refusal: Refusal };

/** Reads a body and counts its prompt. It returns only the part of the body that the backend needs. */
function read(raw: Uint8Array, kind: InferenceKind, models: readonly BodyRules[]): BodyRead | object {
  workerEmit('begun');
  try {
    const request = readRequest(kind, Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength), (id) =>
      ruleOf(models, id),
    );
    const model = ruleOf(models, request.model)!;
    let counted: PromptTokens;
    try {
      counted = countPrompt(request, model);
      refuseLongPrompt(counted.longest, request, model);
    } catch (error) {
      throw askedFor(error, request);
    }
    // Transferred to the main thread, not copied: it may be most of 10 MiB.
    const fields = new Uint8Array(request.outgoing.fields);
    const outgoing = { ...request.outgoing, fields: Buffer.from(fields.buffer) };
    return new Transfer({ request: { ...request, outgoing, body: null, counted } }, [fields.buffer]);
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    const { code, message, param, askedModel } = error;
    return { refusal: { code, message, param, askedModel } };
  }
}

function ruleOf(models: readonly BodyRules[], id: string): BodyRules | undefined {
  return models.find((model) => model.id === id || model.aliases.includes(id));
}

yieldToMain();
worker({ read });
