import { logger } from '@tollgate/runtime';
import type { TokenizerThrottle } from '../../prompt/tokenizer-throttle';
import type { ReadResult, ReadUntil } from '../../upstream/exchange/plain-answer';
import type { AnswerRead } from './answer-worker';
import type { RequestedAnswer } from './plain-output';
import { type PlainReading, readPlain } from './plain-reading';
import { READ_TIMEOUT_FACTOR, type ReadLimits, ReadingPool, UnreadError } from '../workers/reading-pool';

/** Read on the event loop: a few milliseconds. Larger answers go to a worker thread. A vector fits. */
export const MAX_INLINE_BYTES = 128 * 1024;
/** Ten times what 96 MiB of `logprobs` take. */
const MAX_READ_MS = 30_000;
const ANSWER_LIMITS: ReadLimits = {
  // Long, as a backend has done the work.
  maxWaitMs: 120_000,
  maxReadMs: MAX_READ_MS,
  readTimeoutMs: MAX_READ_MS * READ_TIMEOUT_FACTOR,
};
/** Not the workers of bodies: otherwise finished answers would wait behind requests that have not begun. */
const MAX_WORKERS = 1;

/** The tenant whose answer is read. */
export interface AnswerOwner {
  tenantId: string;
  /** Fields of its log lines. */
  logged: object;
}

/**
 * Reads backends' plain answers. Small answers are read at once, large ones in a worker thread, so that no answer
 * delays the requests of others. For 25 MB of `logprobs`, the longest turn of the event loop takes 30 ms of CPU time
 * instead of 1.3 s: the chunks are joined to one buffer for the worker. Each tenant has one large answer in the worker
 * at a time.
 */
export class AnswerReader {
  private readonly pool: ReadingPool;

  constructor(
    private readonly turns: Pick<TokenizerThrottle, 'take'>,
    limits: ReadLimits = ANSWER_LIMITS,
  ) {
    this.pool = new ReadingPool('plain/answer-worker', MAX_WORKERS, limits);
  }

  /**
   * Takes the body over. An answer on which a worker fails is unusable. One for which no worker had time is unread.
   */
  async read(
    body: Buffer,
    asked: RequestedAnswer,
    { tenantId, logged }: AnswerOwner,
    { endsAtMs, isGone }: ReadUntil,
  ): Promise<ReadResult<PlainReading>> {
    const { length } = body;
    if (length <= MAX_INLINE_BYTES) return readPlain(body, asked, this.turns);
    const args = () => {
      if (isGone()) throw new UnreadError('busy', 'nobody waits for it any more');
      return [asked];
    };
    try {
      return received(await this.pool.read<AnswerRead>(tenantId, body, args, endsAtMs));
    } catch (error) {
      if (!(error instanceof UnreadError)) throw error;
      const { why, message } = error;
      const reason = `an answer of ${length} bytes was not read: ${message}`;
      if (why !== 'busy') return { kind: 'unusable', reason };
      if (!isGone()) logger('gateway').warn({ ...logged, reason }, 'an answer was not read');
      return { kind: 'unread' };
    }
  }

  close(): Promise<void> {
    return this.pool.close();
  }
}

/** A Buffer arrives from another thread as a plain Uint8Array. */
function received(read: AnswerRead): ReadResult<PlainReading> {
  if (read.kind === 'unusable' || read.kind === 'unread') return read;
  if (read.kind === 'refused') return { kind: 'usable', answer: read };
  const { begun, output } = read;
  const { buffer, byteOffset, byteLength } = begun.bytes;
  const bytes = Buffer.from(buffer, byteOffset, byteLength);
  return {
    kind: 'usable',
    answer: {
      ...read,
      begun: { bytes, used: begun.used },
      output: { ...output, estimate: () => output.estimate, tokens: () => output.tokens },
    },
  };
}
