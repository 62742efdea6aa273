import type { FastifyReply } from 'fastify';
import { EventEmitter } from 'node:events';
import type { AccessGuard } from '../access/access.guard';
import type { CallerRequest } from '../access/allow';
import { ConsoleError } from '../http/errors';
import { LiveStreams } from './live-streams';

const MAX_AGE_MS = 2_000;
const ACCESS = { operator: 'books.check' } as const;
const settled = () => jest.advanceTimersByTimeAsync(0);

/** The events of a stream, each with the time at which it was sent. */
class Sent extends EventEmitter {
  readonly events: { atMs: number; value: unknown }[] = [];
  lines = 0;
  isEnded = false;
  destroyed = false;

  /** The browser is gone, as Node says it: once. */
  leave(): void {
    this.destroyed = true;
    this.emit('close');
  }

  writeHead(): void {}

  write(text: string): void {
    this.lines++;
    if (text.startsWith('data: ')) this.events.push({ atMs: Date.now(), value: JSON.parse(text.slice(6)) });
  }

  end(): void {
    this.isEnded = true;
  }
}

// The clock of these tests is not that of the machine, also where promises wait for it.
jest.mock('node:timers/promises', () => ({
  setTimeout: (ms: number, _: unknown, { signal }: { signal: AbortSignal }) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, ms);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        reject(signal.reason as Error);
      });
    }),
}));
beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

const requestOf = (userId: string) => ({ consoleCaller: { userId } }) as CallerRequest;

function open(read: () => Promise<unknown>, check: () => Promise<void> = () => Promise.resolve()) {
  const raw = new Sent();
  const streams = new LiveStreams({ check } as unknown as AccessGuard);
  const reply = { raw, hijack: () => {}, getHeaders: () => ({}) } as unknown as FastifyReply;
  const done = streams.send({ request: requestOf('a person'), reply }, { access: ACCESS, read });
  return { raw, streams, done };
}

const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

it.each([0, 50, 300, 900])(
  'a change arrives within two seconds, whenever it happens, when a look takes %d ms',
  async (lookMs) => {
    for (let changeMs = 0; changeMs <= 2_500; changeMs += 83) {
      let value = 'before';
      const { raw, streams, done } = open(async () => {
        // As old as an answer can be: what was read when the look began.
        const read = value;
        await after(lookMs);
        return read;
      });
      await jest.advanceTimersByTimeAsync(lookMs + changeMs);
      value = 'after';
      const changedAtMs = Date.now();
      await jest.advanceTimersByTimeAsync(MAX_AGE_MS);
      expect(raw.events.map((event) => event.value)).toEqual(['before', 'after']);
      expect(raw.events[1]!.atMs - changedAtMs).toBeLessThanOrEqual(MAX_AGE_MS);
      streams.close();
      // A look that is under way.
      await jest.advanceTimersByTimeAsync(MAX_AGE_MS);
      await done;
      expect(raw.isEnded).toBe(true);
    }
  },
);

it('what has not changed is not sent again, and a quiet stream is kept open', async () => {
  let looks = 0;
  const { raw, streams, done } = open(() => Promise.resolve(looks++ < 0));
  await jest.advanceTimersByTimeAsync(16_000);
  expect(looks).toBeGreaterThanOrEqual(16);
  expect(raw.events).toHaveLength(1);
  // The comment that proxies see.
  expect(raw.lines).toBe(2);
  streams.close();
  await done;
});

it('a slow look is followed by a pause, so that a stream never asks without end', async () => {
  let looks = 0;
  const { streams, done } = open(async () => {
    await after(3_000);
    return looks++ < 0;
  });
  await jest.advanceTimersByTimeAsync(32_000);
  expect(looks).toBe(10);
  streams.close();
  await jest.advanceTimersByTimeAsync(3_000);
  await done;
});

it('a service that is away for a moment ends no stream, and a person who may not look any more does', async () => {
  let problem: ConsoleError | null = null;
  const { raw, done } = open(
    () => Promise.resolve('same'),
    () => (problem ? Promise.reject(problem) : Promise.resolve()),
  );
  await settled();
  problem = new ConsoleError('unavailable');
  await jest.advanceTimersByTimeAsync(5_000);
  expect(raw.isEnded).toBe(false);
  problem = new ConsoleError('unauthenticated');
  await jest.advanceTimersByTimeAsync(1_000);
  await done;
  expect(raw.isEnded).toBe(true);
});

it('a browser that leaves during the first look has no stream, and its place is free again', async () => {
  let looks = 0;
  const { raw, streams, done } = open(async () => {
    looks++;
    await after(1_000);
    return looks;
  });
  await jest.advanceTimersByTimeAsync(500);
  raw.leave();
  await jest.advanceTimersByTimeAsync(30_000);
  await done;
  expect([looks, raw.events, streams.count]).toEqual([1, [], 0]);
});

it('a first look that fails is answered as any route, and has no stream', async () => {
  const { raw, streams, done } = open(() => Promise.reject(new ConsoleError('unavailable')));
  await expect(done).rejects.toMatchObject({ code: 'unavailable' });
  expect([raw.isEnded, streams.count]).toEqual([false, 0]);
});

it('looks that are under way count as streams, so no process and no person has more than its limit', async () => {
  const streams = new LiveStreams({ check: () => Promise.resolve() } as unknown as AccessGuard);
  const begin = (userId: string) => {
    const reply = { raw: new Sent(), hijack: () => {}, getHeaders: () => ({}) } as unknown as FastifyReply;
    return streams.send(
      { request: requestOf(userId), reply },
      { access: ACCESS, read: () => after(100).then(() => 1) },
    );
  };
  // One person leaves places for others.
  const begun = Array.from({ length: 20 }, () => begin('greedy'));
  await expect(begin('greedy')).rejects.toMatchObject({ code: 'unavailable' });
  begun.push(...Array.from({ length: 480 }, (_, n) => begin(`person ${n}`)));
  await expect(begin('late')).rejects.toMatchObject({ code: 'unavailable' });
  streams.close();
  await jest.advanceTimersByTimeAsync(100);
  await Promise.all(begun);
  expect(streams.count).toBe(0);
});
