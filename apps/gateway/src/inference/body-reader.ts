import { join } from 'node:path';
import { availableParallelism } from 'node:os';
import { pool, type Pool, TerminateError } from 'workerpool';
import { type InferenceKind, UnavailableError } from '@tollgate/contracts';
import { settlesWithin } from '@tollgate/runtime';
import type { Catalog, AllowedModels } from '../catalog/catalog';
import { DEFAULT_MAX_BODY_MIB } from '../options';
import { askedFor, InferenceError, RuinousBodyError } from '../inference-errors';
import { ClientLeftError } from './read-body';
import { type InferenceRequest, readRequest } from '../body/inference-request';
import { ReadTime } from './read-time';
import type { BodyRules } from '../body/rules';
import type { BodyRead } from './body-worker';

/** Read on the event loop: 1 ms, at worst 10 ms. Larger bodies go to a worker thread. */
export const MAX_INLINE_BYTES = 32 * 1024;
export interface ReadLimits {
  /** Until a worker begins, behind other large bodies. */
  maxWaitMs: number;
  /** CPU time of one body in a worker. The largest body that `checkStructure` accepts takes a tenth of it. */
  maxReadMs: number;
  /** For one body in a worker, if other programs or the main thread need the cores. */
  readTimeoutMs: number;
}

const MAX_WAIT_MS = 30_000;
const MAX_READ_MS = 10_000;
const READ_MS_PER_MIB = MAX_READ_MS / DEFAULT_MAX_BODY_MIB;
/** Six times the CPU time. */
const READ_TIMEOUT_FACTOR = 6;

/** @param maxBodyMib the largest body. A larger one may take longer. */
export function readLimits(maxBodyMib = DEFAULT_MAX_BODY_MIB): ReadLimits {
  const maxReadMs = Math.max(MAX_READ_MS, maxBodyMib * READ_MS_PER_MIB);
  return { maxWaitMs: MAX_WAIT_MS, maxReadMs, readTimeoutMs: maxReadMs * READ_TIMEOUT_FACTOR };
}
/** Each worker has its own tokenizers (80 MB), so idle workers are ended. */
const MAX_WORKERS = Math.max(1, Math.min(2, availableParallelism() - 1));
const IDLE_MS = 60_000;
const MAX_WORKER_HEAP_MIB = 1_024;

/** The compiled worker: threads load no TypeScript. */
const WORKER = __filename.endsWith('.ts')
  ? join(__dirname, '..', '..', 'dist', 'inference', 'body-worker.js')
  : join(__dirname, 'body-worker.js');

/** The sender of a body. */
export interface Sender {
  keyId: string;
  models: AllowedModels;
  client: { readonly left: boolean };
}

/** A body that waits for a worker. */
interface Waiting {
  /** Null: taken by a worker, or given up after the longest wait. */
  raw: Buffer | null;
  /** Called when a worker begins to read the body. */
  begin: () => void;
  /** Removes the body from the pool's queue. */
  leave: () => void;
}

/**
 * Reads bodies into requests. Small bodies are read at once, large ones in worker threads, so that no body delays the
 * requests of others. Each key has one large body in the workers at a time, so that no key blocks the others.
 */
export class BodyReader {
  private workers: Pool | null = null;
  private running = 0;
  private idle: NodeJS.Timeout | undefined;
  private readonly lastOfKey = new Map<string, Promise<unknown>>();

  constructor(
    private readonly catalog: Catalog,
    private readonly limits: ReadLimits = readLimits(),
  ) {}

  /**
   * Takes the buffer over: a large body is transferred to its worker, not copied (copies of 10 MiB keep the garbage
   * collector busy). Throws InferenceError: 400 with the wrong field, or 404. Rejects with ClientLeftError, with
   * UnavailableError when no worker could read the body, and with RuinousBodyError when a worker failed on it.
   */
  read(kind: InferenceKind, raw: Buffer, sender: Sender): InferenceRequest | Promise<InferenceRequest> {
    if (raw.length <= MAX_INLINE_BYTES) return readRequest(kind, raw, (id) => this.catalog.find(id, sender.models));
    const before = this.lastOfKey.get(sender.keyId) ?? Promise.resolve();
    const waiting: Waiting = { raw, begin: () => {}, leave: () => {} };
    const begun = new Promise<void>((resolve) => (waiting.begin = resolve));
    const work = before.then(() => this.readInWorker(kind, waiting, sender));
    const ended = work.then(
      () => undefined,
      () => undefined,
    );
    void ended.then(waiting.begin);
    this.lastOfKey.set(sender.keyId, ended);
    void ended.then(() => {
      if (this.lastOfKey.get(sender.keyId) === ended) this.lastOfKey.delete(sender.keyId);
    });
    return this.begunInTime(begun, work, waiting);
  }

  private async begunInTime(
    begun: Promise<void>,
    work: Promise<InferenceRequest>,
    waiting: Waiting,
  ): Promise<InferenceRequest> {
    const { maxWaitMs } = this.limits;
    if (await settlesWithin(maxWaitMs, begun)) return work;
    waiting.raw = null;
    waiting.leave();
    throw new UnavailableError(`a body was not read: no worker was free within ${maxWaitMs} ms`);
  }

  async close(): Promise<void> {
    clearTimeout(this.idle);
    const workers = this.workers;
    this.workers = null;
    await workers?.terminate(true);
  }

  private async readInWorker(kind: InferenceKind, waiting: Waiting, sender: Sender): Promise<InferenceRequest> {
    const { raw } = waiting;
    if (sender.client.left || raw === null) throw new ClientLeftError();
    waiting.raw = null;
    const models = this.catalog.all(sender.models).map(rulesOf);
    // A part of a larger buffer cannot be transferred.
    const owned = raw.length === raw.buffer.byteLength;
    const bytes = owned ? new Uint8Array(raw.buffer) : new Uint8Array(raw);
    const { length } = raw;
    clearTimeout(this.idle);
    this.running += 1;
    const workers = (this.workers ??= pool(WORKER, {
      workerType: 'thread',
      maxWorkers: MAX_WORKERS,
      workerThreadOpts: { resourceLimits: { maxOldGenerationSizeMb: MAX_WORKER_HEAP_MIB } },
    }));
    const time = new ReadTime(this.limits);
    try {
      const task = workers.exec('read', [kind, bytes, models], {
        transfer: [bytes.buffer],
        on: () => {
          waiting.begin();
          time.begin(() => void task.cancel());
        },
      });
      const leave = () => void task.cancel();
      waiting.leave = leave;
      const result = (await task) as BodyRead;
      if ('request' in result) return received(result.request);
      const { code, message, param, askedModel } = result.refusal;
      throw askedFor(new InferenceError(code, { message, param }), { model: askedModel });
    } catch (error) {
      if (error instanceof InferenceError) throw error;
      const why = `a body of ${length} bytes was not read: ${time.isOver ? 'took too long' : (error as Error).message}`;
      // The body cost a worker, unless our own shutdown ended it, or the machine gave the worker no time.
      const isRuinous = time.isUsedUp || (error instanceof TerminateError && this.workers === workers && !time.isOver);
      throw isRuinous ? new RuinousBodyError(why) : new UnavailableError(why);
    } finally {
      time.end();
      this.running -= 1;
      if (this.running === 0) this.idle = setTimeout(() => void this.close(), IDLE_MS).unref();
    }
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
  const { maxTokensPerFile, maxStopSequences, dottedNames, passthrough, mediaUrls } = model;
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
