import { createRequire } from 'node:module';
import type { ISocketFactory } from 'kafkajs';
import { endFetches, patchFetchWait } from './fetch-wait';

interface Answer {
  responses: { partitions: { messages: object[] }[] }[];
}

const kafkajs = createRequire(__filename);
const NOTHING: Answer = { responses: [{ partitions: [{ messages: [] }] }] };
const MESSAGES: Answer = { responses: [{ partitions: [{ messages: [] }, { messages: [{}] }] }] };

interface Broker {
  fetch(request: { maxWaitTime: number; topics: [] }): Promise<Answer>;
}

/** A broker of kafkajs that answers what it is told, and notes how long each fetch waits. */
function brokerOf(socketFactory: ISocketFactory, answer: () => Promise<Answer>) {
  const waitsMs: number[] = [];
  patchFetchWait();
  const OneBroker = kafkajs('kafkajs/src/broker') as new (options: object) => Broker;
  const send = async ({ maxWaitTime }: { maxWaitTime: number }) => {
    waitsMs.push(maxWaitTime);
    return answer();
  };
  const broker = new OneBroker({
    connectionPool: { socketFactory, send },
    logger: { namespace: () => ({}) },
    versions: {},
  });
  Object.assign(broker, { lookupRequest: () => (request: object) => request, isConnected: () => true });
  return { waitsMs, fetch: () => broker.fetch({ maxWaitTime: 1_000, topics: [] }) };
}

const factory = (): ISocketFactory => () => {
  throw new Error('no network here');
};

it('the wait of a fetch is short at first, doubles while no messages arrive, and has a limit', async () => {
  let answer = NOTHING;
  const { waitsMs, fetch } = brokerOf(factory(), async () => answer);
  for (let i = 0; i < 5; i++) await fetch();
  expect(waitsMs).toEqual([25, 250, 500, 1_000, 1_000]);
  answer = MESSAGES;
  expect(await fetch()).toBe(MESSAGES);
  answer = NOTHING;
  await fetch();
  await fetch();
  expect(waitsMs.slice(5)).toEqual([1_000, 250, 500]);
});

it('an end of the fetches of a client ends the one that waits, and no fetch of another client', async () => {
  const [ended, other] = [factory(), factory()];
  let resolve!: (answer: Answer) => void;
  const later = new Promise<Answer>((settle) => (resolve = settle));
  const waiting = brokerOf(ended, () => later);
  const unharmed = brokerOf(other, () => later);
  const fetched = waiting.fetch();
  const others = unharmed.fetch();
  endFetches(ended);
  expect(await fetched).toEqual({ responses: [] });
  resolve(MESSAGES);
  expect(await others).toBe(MESSAGES);
});

it('a fetch after the end waits at the broker for a short time, so that it cannot loop without a pause', async () => {
  const ended = factory();
  const { waitsMs, fetch } = brokerOf(ended, async () => MESSAGES);
  await fetch();
  endFetches(ended);
  expect(await fetch()).toBe(MESSAGES);
  expect(waitsMs).toEqual([25, 25]);
});

it('a failed fetch fails for its caller', async () => {
  const failure = new Error('the connection broke');
  const { fetch } = brokerOf(factory(), () => Promise.reject(failure));
  await expect(fetch()).rejects.toBe(failure);
});
