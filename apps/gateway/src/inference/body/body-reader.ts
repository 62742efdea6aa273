import { join } from 'node:path';
import { availableParallelism } from 'node:os';
import { pool, Promise as PoolPromise, type Pool } from 'workerpool';
import { type InferenceKind, UnavailableError } from '@tollgate/contracts';
import type { Catalog, AllowedModels } from '../../catalog/catalog';
import { InferenceError } from '../errors';
import { ClientLeftError } from '../read-body';
import { type Ask, readAsk } from './ask';
import type { BodyRules } from './rules';
import type { BodyRead } from './body-worker';

/** Read, checked and counted on the event loop: 1 ms, at the worst 10. What is larger goes to a worker thread. */
export const MAX_INLINE_BYTES = 32 * 1024;
/** For one body in a worker; the largest that `checkStructure` lets pass takes a tenth of it. */
const READ_TIMEOUT_MS = 10_000;
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

/**
 * Bodies → asks. Small ones at once; large ones in worker threads, so that no body holds up the requests of others: one of a key at a time, so that nobody's large bodies stand in the way of
 * another key's.
 */
export class BodyReader {
  private workers: Pool | null = null;
  private running = 0;
  private idle: NodeJS.Timeout | undefined;
  private readonly lastOfKey = new Map<string, Promise<unknown>>();

  constructor(private readonly catalog: Catalog) {}

  /**
   * Takes the bytes: a large body is handed over to its worker, not copied (copies of 10 MiB keep the garbage collector busy), and is gone here.
   * Throws InferenceError: 400 with the field that is wrong, 404; rejects with ClientLeftError, and with UnavailableError when no worker could read it.
   */
  read(kind: InferenceKind, raw: Buffer, sender: Sender): Ask | Promise<Ask> {
    if (raw.length <= MAX_INLINE_BYTES) return readAsk(kind, raw, (id) => this.catalog.find(id, sender.models));
    const before = this.lastOfKey.get(sender.keyId) ?? Promise.resolve();
    const read = before.then(() => this.readInWorker(kind, raw, sender));
    const ended = read.then(
      () => undefined,
      () => undefined,
    );
    this.lastOfKey.set(sender.keyId, ended);
    void ended.then(() => {
      if (this.lastOfKey.get(sender.keyId) === ended) this.lastOfKey.delete(sender.keyId);
    });
    return read;
  }

  async close(): Promise<void> {
    clearTimeout(this.idle);
    const workers = this.workers;
    this.workers = null;
    await workers?.terminate(true);
  }

  private async readInWorker(kind: InferenceKind, raw: Buffer, sender: Sender): Promise<Ask> {
    if (sender.client.left) throw new ClientLeftError();
    const models = this.catalog.all(sender.models).map(rulesOf);
    // A part of a larger buffer cannot be handed over.
    const owned = raw.length === raw.buffer.byteLength;
    const bytes = owned ? new Uint8Array(raw.buffer) : new Uint8Array(raw);
    const { length } = raw;
    clearTimeout(this.idle);
    this.running += 1;
    try {
      this.workers ??= pool(WORKER, {
        workerType: 'thread',
        maxWorkers: MAX_WORKERS,
        workerThreadOpts: { resourceLimits: { maxOldGenerationSizeMb: MAX_WORKER_HEAP_MIB } },
      });
      const result = (await this.workers
        .exec('read', [kind, bytes, models], { transfer: [bytes.buffer] })
        .timeout(READ_TIMEOUT_MS)) as BodyRead;
      if ('ask' in result) return received(result.ask);
      const { code, message, param } = result.refusal;
      throw new InferenceError(code, { message, param });
    } catch (error) {
      if (error instanceof InferenceError) throw error;
      const why = error instanceof PoolPromise.TimeoutError ? 'took too long' : (error as Error).message;
      throw new UnavailableError(`a body of ${length} bytes was not read: ${why}`);
    } finally {
      this.running -= 1;
      if (this.running === 0) this.idle = setTimeout(() => void this.close(), IDLE_MS).unref();
    }
  }
}

/** A Buffer comes out of another thread as what it is made of. */
function received(ask: Ask): Ask {
  const { buffer, byteOffset, byteLength } = ask.outgoing.fields;
  return { ...ask, outgoing: { ...ask.outgoing, fields: Buffer.from(buffer, byteOffset, byteLength) } };
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
