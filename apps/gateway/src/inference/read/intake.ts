import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { InferenceKind } from '@tollgate/contracts';
import { Admitter } from '../../admit/admit';
import { BodyMemory, type BodyShare } from '../../admit/body-memory';
import { nearestLimits } from '../../admit/limit-states';
import type { FullBudget, MemoryBudget } from '../../admit/memory-budget';
import { RefusedKeys } from '../../admit/refused-keys';
import { WastedRequests } from '../../admit/wasted-requests';
import type { Principal } from '../../authenticate/authenticate';
import { Catalog } from '../../catalog/catalog';
import { BodyReader } from './body-reader';
import type { InferenceRequest } from '../../body/inference-request';
import type { Client } from '../client/client';
import { InferenceError, RuinousBodyError } from '../../inference-errors';
import { announcedBytes, ClientLeftError, readBody } from './read-body';
import { ofAdmission } from '../refusals';

/**
 * Bodies up to this length are read without a look first, unless the key was just refused. Admission checks the limits
 * a moment later.
 */
const MAX_UNLOOKED_BODY_BYTES = 16 * 1024;
/** The most that a socket gives at once. A body that came in one piece may stay in memory as it is. */
const MAX_PIECE_BYTES = 64 * 1024;
const BUDGET_WAIT_SECONDS = 1;
const WAIT_FOR_OTHERS = 'Wait for requests in progress to finish.';
const MIB = 1024 * 1024;

/** A body in memory, until it is released. */
export interface Body {
  /** Before `toRequest`. */
  readonly bytes: Buffer;
  /** Called once, because the bytes may go to a worker thread. Throws and rejects as `BodyReader.read`. */
  toRequest(kind: InferenceKind): InferenceRequest | Promise<InferenceRequest>;
  /** From now on only this request is kept of the body. Releases the rest of the memory. */
  becomes(request: InferenceRequest): void;
  /**
   * Reserves memory for the kept answer of a repeat: until `release`, or after `repeated` until its client has read it.
   * Repeats are not limited by credit or concurrency. Throws InferenceError if there is no room.
   */
  holdAnswer(this: void, bytes: number): void;
  /** Reserves memory for an answer that is recorded, until its client has read it. False: there is none. */
  recordAnswer(this: void, bytes: number): boolean;
  /** Releases the memory of the body. Repeats are harmless. */
  release(): void;
  /** The request failed before admission: counts against the key's limit of wasted requests. */
  wasted(error: unknown): void;
  /** The request got the answer of an earlier one: counts in the same way, as no other limit counts it. */
  repeated(): void;
}

/**
 * Reads the bodies of authenticated requests. Requests that can be refused without the body are refused before it is
 * read.
 */
@Injectable()
export class Intake {
  constructor(
    private readonly admitter: Admitter,
    private readonly catalog: Catalog,
    private readonly memory: BodyMemory,
    private readonly wastedRequests: WastedRequests,
    private readonly refusedKeys: RefusedKeys,
    private readonly bodies: BodyReader,
  ) {}

  /**
   * Throws InferenceError for a key with too many wasted requests. Called before anything is read for a request, from
   * the store or from its body.
   */
  refuseAfterWaste({ keyId, keyLimits }: Principal): void {
    const nowMs = Date.now();
    const waitMs = this.wastedRequests.waitMs(keyId, keyLimits.requestsPerMinute, nowMs);
    if (waitMs === 0) return;
    const retryAfterSeconds = Math.ceil(waitMs / 1_000);
    const message = `Too many requests with this key were invalid or incomplete. Retry after ${retryAfterSeconds} s.`;
    const until = new Date(nowMs + waitMs).toISOString();
    const by = { what: 'invalid_requests' as const, scope: 'key' as const, until };
    throw new InferenceError('requests_limit_exceeded', { message, retryAfterSeconds, by });
  }

  /**
   * Rejects with InferenceError, with ClientLeftError, and with UnavailableError if the store does not answer.
   * @param isRepeat the request may get a kept answer, which needs neither limits nor credit. So there is no look
   */
  async take(request: IncomingMessage, client: Client, principal: Principal, isRepeat = false): Promise<Body> {
    const share = this.memory.open(principal);
    try {
      // 1. Refuse keys with too many unread answers.
      this.refuseUnread(principal);
      // 2. Refuse a wrong media type and a body that is announced as too large.
      const announced = announcedBytes(request, share.maxBytes);
      // 3. Look whether any request of the key would be admitted.
      const isSmall = announced !== null && announced <= MAX_UNLOOKED_BODY_BYTES;
      if (!isRepeat && (!isSmall || this.refusedKeys.has(principal.keyId))) await this.look(client, principal);
      // 4. Reserve memory.
      const full = (budget: FullBudget) => ofMemory(budget, this.memory, 'request bodies', WAIT_FOR_OTHERS);
      const budget = share.growTo(announced ?? 0);
      if (budget !== null) throw full(budget);
      // 5. Only now send 100-continue, and read the body.
      client.awaitBody();
      const bytes = await readBody(request, announced, share, full);
      return this.bodyOf(bytes, share, client, principal);
    } catch (error) {
      this.countWaste(principal, error, share.bytes, isRepeat);
      share.release();
      throw error;
    }
  }

  private bodyOf(bytes: Buffer, share: BodyShare, client: Client, principal: Principal): Body {
    // Kept, as a worker may take the buffer over.
    const { length } = bytes;
    const answer = this.memory.open(principal);
    const recording = this.memory.openRecording(principal);
    let fullOfAnswers: InferenceError | null = null;
    let isRepeated = false;
    return {
      bytes,
      toRequest: (kind) => this.bodies.read(kind, bytes, { keyId: principal.keyId, models: principal.models, client }),
      becomes: (read) => {
        // Much of a large body may have been dropped.
        if (length > MAX_PIECE_BYTES) share.shrinkTo(bytesOf(read));
      },
      holdAnswer: (answerBytes) => {
        // Half of the key's memory at most: whatever the settings are, one repeat fits beside its body.
        const of = answer.growTo(Math.min(answerBytes, this.memory.limits.perKey / 2));
        if (of === null) return;
        fullOfAnswers = ofMemory(of, this.memory, 'request bodies and repeated answers', WAIT_FOR_OTHERS);
        throw fullOfAnswers;
      },
      recordAnswer: (recordedBytes) => {
        const isFirst = recording.bytes === 0;
        if (recording.growTo(recordedBytes) !== null) return false;
        if (isFirst) client.afterLastByte(() => recording.release());
        return true;
      },
      release: () => {
        share.release();
        if (!isRepeated) answer.release();
      },
      wasted: (error) => {
        const isOfAnswers = error === fullOfAnswers;
        if (error instanceof InferenceError && OF_ADMISSION.has(error.status) && !isOfAnswers)
          this.refusedKeys.wasRefused(principal.keyId);
        this.countWaste(principal, error, length, isOfAnswers);
      },
      repeated: () => {
        isRepeated = true;
        client.afterLastByte(() => answer.release());
        const { keyId, keyLimits } = principal;
        this.wastedRequests.countInvalid(keyId, keyLimits.requestsPerMinute, length, Date.now());
      },
    };
  }

  private async look(client: Client, principal: Principal): Promise<void> {
    const result = await this.admitter.look(principal, !this.catalog.hasFree(principal.models));
    if (result.kind === 'clear') return this.refusedKeys.wasClear(principal.keyId);
    this.refusedKeys.wasRefused(principal.keyId);
    client.setLimits(() => nearestLimits(principal, result.limits));
    throw ofAdmission(result, principal, Date.now());
  }

  /** New requests would only add to the answers in memory. */
  private refuseUnread(principal: Principal): void {
    const { answers } = this.memory;
    const full = answers.fullFor(principal, 0);
    if (full !== null) throw ofMemory(full, answers, 'unread answers', 'Read the answers of earlier requests.');
  }

  /** @param isRepeat its state was read from the store for nothing, so it counts whatever refused it */
  private countWaste({ keyId, keyLimits }: Principal, error: unknown, bytes: number, isRepeat: boolean): void {
    const { requestsPerMinute } = keyLimits;
    const isRefusal = error instanceof InferenceError;
    // Our own failures cost the key nothing.
    if (!isRefusal && !(error instanceof ClientLeftError || error instanceof RuinousBodyError)) return;
    if (!isRefusal || INVALID.has(error.status) || (isRepeat && error.status < 500))
      this.wastedRequests.countInvalid(keyId, requestsPerMinute, bytes, Date.now());
    else if (error.status < 500) this.wastedRequests.countUnserved(keyId, requestsPerMinute, bytes, Date.now());
  }
}

function ofMemory(
  full: FullBudget,
  { limits }: Pick<MemoryBudget, 'limits'>,
  contents: string,
  advice: string,
): InferenceError {
  const retryAfterSeconds = BUDGET_WAIT_SECONDS;
  if (full === 'all') return new InferenceError('overloaded_error', { retryAfterSeconds });
  const [whose, maxBytes] = full === 'key' ? ['key', limits.perKey] : ['account', limits.perTenant];
  return new InferenceError('concurrency_limit_exceeded', {
    message:
      `The ${contents} of this ${whose} exceed ${Math.floor(maxBytes / MIB)} MiB in total. ${advice} ` +
      `Retry after ${retryAfterSeconds} s.`,
    retryAfterSeconds,
    by: { what: 'body_memory', scope: full },
  });
}

/** The memory of a request that a worker has read. */
function bytesOf({ outgoing }: InferenceRequest): number {
  let bytes = outgoing.fields.length;
  for (const { name, json } of outgoing.extras) bytes += name.length + json.length;
  return bytes;
}

/** Refusals by limits or credit. */
const OF_ADMISSION: ReadonlySet<number> = new Set([402, 429]);
/**
 * The request itself is at fault. 422 is a used Idempotency-Key whose kept answer the request does not get. 409 is
 * missing: a client may wait for its first request, and each try costs as little as a refusal.
 */
const INVALID: ReadonlySet<number> = new Set([400, 404, 408, 413, 415, 422]);
