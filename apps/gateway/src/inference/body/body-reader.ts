import { join } from 'node:path';
import { availableParallelism } from 'node:os';
import { pool, Promise as PoolPromise, type Pool, TerminateError } from 'workerpool';
import { type InferenceKind, UnavailableError } from '@tollgate/contracts';
import { settlesWithin } from '@tollgate/runtime';
import type { Catalog, AllowedModels } from '../../catalog/catalog';
import { InferenceError, RuinousBodyError } from '../errors';
import { ClientLeftError } from '../read-body';
import { type InferenceRequest, readRequest } from './inference-request';
import type { BodyRules } from './rules';
import type { BodyRead } from './body-worker';

/** Read, checked and counted on the event loop: 1 ms, at the worst 10. What is larger goes to a worker thread. */
export const MAX_INLINE_BYTES = 32 * 1024;
export interface ReadLimits {
  /** Until a worker begins: behind other bodies of its key, and behind those of others. */
  maxWaitMs: number;
  /** For one body in a worker; the largest that `checkStructure` lets pass takes a tenth of it. */
  readTimeoutMs: number;
}

const DEFAULT_READ_LIMITS: ReadLimits = { maxWaitMs: 30_000, readTimeoutMs: 10_000 };
/** Each has its own tokenizers, 80 MB; so none is kept that nobody needs. */
const MAX_WORKERS = Math.max(1, Math.min(2, availableParallelism() - 1));
const IDLE_MS = 60_000;
const MAX_WORKER_HEAP_MIB = 1_024;

/** The compiled worker: threads load no TypeScript. */
const WORKER = __filename.endsWith('.ts')
  ? join(__dirname, '..', '..', '..', 'dist', 'inference', 'body', 'body-worker.js')
  : join(__dirname, 'body-worker.js');

/** Who sends a body. */
export interface Sender {
  keyId: string;
  models: AllowedModels;
  client: { readonly left: boolean };
}

/** A body's way to a worker. */
interface Waiting {
  /** Null: it has waited for too long, and nobody wants it. */
  raw: Buffer | null;
  /** A worker reads it. */
  begin: () => void;
  /** Takes it out of the pool's queue. */
  leave: () => void;
}

/**
 * Bodies → asks. Small ones at once; large ones in worker threads, so that no body holds up the requests of others: one
 * of a key at a time, so that nobody's large bodies stand in the way of another key's.
 */
export class BodyReader {
  private workers: Pool | null = null;
  private running = 0;
  private idle: NodeJS.Timeout | undefined;
  private readonly lastOfKey = new Map<string, Promise<unknown>>();

  constructor(
    private readonly catalog: Catalog,
    private readonly limits: ReadLimits = DEFAULT_READ_LIMITS,
  ) {}

  /**
   * Takes the bytes: a large body is handed over to its worker, not copied (copies of 10 MiB keep the garbage collector
   * busy), and is gone here. Throws InferenceError: 400 with the field that is wrong, 404; rejects with
   * ClientLeftError, and with UnavailableError when no worker could read it: with RuinousBodyError when one tried.
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
    // A part of a larger buffer cannot be handed over.
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
    try {
      const task = workers.exec('read', [kind, bytes, models], { transfer: [bytes.buffer], on: waiting.begin });
      waiting.leave = () => void task.cancel();
      const result = (await task.timeout(this.limits.readTimeoutMs)) as BodyRead;
      if ('request' in result) return received(result.request);
      const { code, message, param } = result.refusal;
      throw new InferenceError(code, { message, param });
    } catch (error) {
      if (error instanceof InferenceError) throw error;
      const tookTooLong = error instanceof PoolPromise.TimeoutError;
      const why = `a body of ${length} bytes was not read: ${tookTooLong ? 'took too long' : (error as Error).message}`;
      // The worker is lost with it; unless it was ended by our own end.
      const isRuinous = tookTooLong || (error instanceof TerminateError && this.workers === workers);
      throw isRuinous ? new RuinousBodyError(why) : new UnavailableError(why);
    } finally {
      this.running -= 1;
      if (this.running === 0) this.idle = setTimeout(() => void this.close(), IDLE_MS).unref();
    }
  }
}

/** A Buffer comes out of another thread as what it is made of. */
function received(request: InferenceRequest): InferenceRequest {
  const { buffer, byteOffset, byteLength } = request.outgoing.fields;
  return { ...request, outgoing: { ...request.outgoing, fields: Buffer.from(buffer, byteOffset, byteLength) } };
}

/** Without addresses and secrets of backends. */
function rulesOf(model: BodyRules): BodyRules {
  const { id, kind, contextTokens, maxOutputTokens, tokenizer, templateTokensPerMessage, templateTokens } = model;
  const { maxTokensPerImage, maxTokensPerAudio, passthrough, mediaUrls } = model;
  return {
    id,
    kind,
    contextTokens,
    maxOutputTokens,
    tokenizer,
    templateTokensPerMessage,
    templateTokens,
    maxTokensPerImage,
    maxTokensPerAudio,
    passthrough,
    mediaUrls,
  };
}
