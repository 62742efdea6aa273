import { createRequire } from 'node:module';
import { unlessAborted } from '@tollgate/runtime';
import type { ISocketFactory } from 'kafkajs';

/** The parts of kafkajs's inner broker that are used here. Each client has its own. */
interface Broker {
  connectionPool: { socketFactory: ISocketFactory };
  fetch(request: FetchRequest): Promise<FetchAnswer>;
}

interface FetchRequest {
  /** The limit that the consumer has set. */
  maxWaitTime: number;
}

interface FetchAnswer {
  responses: { partitions: { messages: unknown[] }[] }[];
}

/** Of the first fetch, whose answer shows that the consumer misses no new message, and of those after `endFetches`. */
const FIRST_WAIT_MS = 25;
/** Of the fetch after one that brought messages. A partition that is paused or resumed then has to wait for it. */
const LEAST_WAIT_MS = 250;
const NO_MESSAGES: FetchAnswer = { responses: [] };

/** For each client whose fetches can be ended, by its socket factory: aborted when they are. */
const endings = new WeakMap<ISocketFactory, AbortController>();
let patched = false;

/** The fetches of this client that wait at a broker return no messages at once. Later ones wait for FIRST_WAIT_MS. */
export function endFetches(factory: ISocketFactory): void {
  endingOf(factory).abort();
}

function endingOf(factory: ISocketFactory): AbortController {
  const ending = endings.get(factory) ?? new AbortController();
  endings.set(factory, ending);
  return ending;
}

/**
 * In kafkajs 2.2.4, each fetch without messages waits at the broker for the same time. A long wait delays the start,
 * the stop and a pause, and a short one keeps idle processes and brokers busy. Here the wait is short at first, doubles
 * up to the consumer's limit while no messages arrive, and ends when the consumer stops.
 */
export function patchFetchWait(): void {
  if (patched) return;
  patched = true;
  const { prototype } = createRequire(__filename)('kafkajs/src/broker') as { prototype: Broker };
  const { fetch } = prototype;
  const waitsMs = new WeakMap<Broker, number>();
  prototype.fetch = async function (this: Broker, request: FetchRequest): Promise<FetchAnswer> {
    const { signal } = endingOf(this.connectionPool.socketFactory);
    const waitMs = signal.aborted ? FIRST_WAIT_MS : (waitsMs.get(this) ?? FIRST_WAIT_MS);
    const maxWaitTime = Math.min(waitMs, request.maxWaitTime);
    const fetched = fetch.call(this, { ...request, maxWaitTime });
    if (signal.aborted) return fetched;
    let answer: FetchAnswer;
    try {
      answer = await unlessAborted(signal, fetched);
    } catch (error) {
      if (signal.aborted) return NO_MESSAGES;
      throw error;
    }
    const empty = answer.responses.every(({ partitions }) => partitions.every(({ messages }) => messages.length === 0));
    waitsMs.set(this, empty ? Math.max(LEAST_WAIT_MS, 2 * maxWaitTime) : LEAST_WAIT_MS);
    return answer;
  };
}
