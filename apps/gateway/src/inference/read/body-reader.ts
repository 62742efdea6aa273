import { availableParallelism } from 'node:os';
import { type InferenceKind, UnavailableError } from '@tollgate/contracts';
import type { Catalog, AllowedModels } from '../../catalog/catalog';
import { DEFAULT_MAX_BODY_MIB } from '../../options';
import { askedFor, InferenceError, RuinousBodyError } from '../../inference-errors';
import { ClientLeftError } from './read-body';
import { type InferenceRequest, readRequest } from '../../body/inference-request';
import type { BodyRules } from '../../body/rules';
import type { BodyRead } from './body-worker';
import { READ_TIMEOUT_FACTOR, type ReadLimits, ReadingPool, UnreadError } from '../workers/reading-pool';

/** Read on the event loop: 1 ms, at worst 10 ms. Larger bodies go to a worker thread. */
export const MAX_INLINE_BYTES = 32 * 1024;
const MAX_WAIT_MS = 30_000;
/** The largest body that `checkStructure` accepts takes a tenth of it. */
const MAX_READ_MS = 10_000;
const READ_MS_PER_MIB = MAX_READ_MS / DEFAULT_MAX_BODY_MIB;
const MAX_WORKERS = Math.max(1, Math.min(2, availableParallelism() - 1));

/** @param maxBodyMib the largest body. A larger one may take longer. */
export function readLimits(maxBodyMib = DEFAULT_MAX_BODY_MIB): ReadLimits {
  const maxReadMs = Math.max(MAX_READ_MS, maxBodyMib * READ_MS_PER_MIB);
  return { maxWaitMs: MAX_WAIT_MS, maxReadMs, readTimeoutMs: maxReadMs * READ_TIMEOUT_FACTOR };
}

/** The sender of a body. */
export interface Sender {
  keyId: string;
  models: AllowedModels;
  client: { readonly left: boolean };
}

/**
 * Reads bodies into requests. Small bodies are read at once, large ones in worker threads, so that no body delays the
 * requests of others. Each key has one large body in the workers at a time.
 */
export class BodyReader {
  private readonly pool: ReadingPool;

  constructor(
    private readonly catalog: Catalog,
    limits: ReadLimits = readLimits(),
  ) {
    this.pool = new ReadingPool('read/body-worker', MAX_WORKERS, limits);
  }

  /**
   * Takes the buffer over. Throws InferenceError: 400 with the wrong field, or 404. Rejects with ClientLeftError, with
   * UnavailableError when no worker could read the body, and with RuinousBodyError when a worker failed on it.
   */
  read(kind: InferenceKind, raw: Buffer, sender: Sender): InferenceRequest | Promise<InferenceRequest> {
    if (raw.length <= MAX_INLINE_BYTES) return readRequest(kind, raw, (id) => this.catalog.find(id, sender.models));
    return this.readInWorker(kind, raw, sender);
  }

  close(): Promise<void> {
    return this.pool.close();
  }

  private async readInWorker(kind: InferenceKind, raw: Buffer, sender: Sender): Promise<InferenceRequest> {
    const { length } = raw;
    const args = () => {
      if (sender.client.left) throw new ClientLeftError();
      return [kind, this.catalog.all(sender.models).map(rulesOf)];
    };
    const result = await this.pool.read<BodyRead>(sender.keyId, raw, args).catch((error: unknown) => {
      if (!(error instanceof UnreadError)) throw error;
      const why = `a body of ${length} bytes was not read: ${error.message}`;
      throw error.why === 'costly' ? new RuinousBodyError(why) : new UnavailableError(why);
    });
    if ('request' in result) return received(result.request);
    const { code, message, param, askedModel } = result.refusal;
    throw askedFor(new InferenceError(code, { message, param }), { model: askedModel });
  }
}

/** A Buffer arrives from another thread as a plain Uint8Array. */
function received(request: InferenceRequest): InferenceRequest {
  const { buffer, byteOffset, byteLength } = request.outgoing.fields;
  return { ...request, outgoing: { ...request.outgoing, fields: Buffer.from(buffer, byteOffset, byteLength) } };
}

/** Omits the addresses and secrets of backends. */
function rulesOf(model: BodyRules): BodyRules {
  const { id, aliases, kind, contextTokens, maxOutputTokens, clamp, tools, jsonSchema, routing, tokenizer } = model;
  const { templateTokensPerMessage, templateTokens, maxTokensPerImage, maxTokensPerAudio, maxTokensPerVideo } = model;
  const { vocabularyTokens, dimensions, maxTokensPerFile, maxStopSequences, dottedNames, passthrough, mediaUrls } =
    model;
  return {
    id,
    aliases,
    kind,
    contextTokens,
    maxOutputTokens,
    clamp,
    tools,
    jsonSchema,
    routing,
    tokenizer,
    templateTokensPerMessage,
    templateTokens,
    vocabularyTokens,
    dimensions,
    maxTokensPerImage,
    maxTokensPerAudio,
    maxTokensPerVideo,
    maxTokensPerFile,
    maxStopSequences,
    dottedNames,
    passthrough,
    mediaUrls,
  };
}
