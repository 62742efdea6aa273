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
  readonly others: string[] = [];
  isEnded = false;
  destroyed = false;
  /** Bytes that were written and not sent yet. */
  writableLength = 0;

  /** The browser is gone, as Node says it: once. */
  leave(): void {
    this.destroyed = true;
    this.emit('close');
  }

  writeHead(): void {}

  write(text: string): void {
    if (text.startsWith('data: ')) this.events.push({ atMs: Date.now(), value: JSON.parse(text.slice(6)) });
    else this.others.push(text);
  }

  end(): void {
    this.isEnded = true;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
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

type Check = (request: CallerRequest) => Promise<void>;
const streamsWith = (check: Check) => new LiveStreams({ check } as unknown as AccessGuard);

function open(
  read: () => Promise<unknown>,
  check: Check = () => Promise.resolve(),
  { streams = streamsWith(check), person = 'a person', name = 'one' } = {},
) {
  const raw = new Sent();
  const reply = { raw, hijack: () => {}, getHeaders: () => ({}) } as unknown as FastifyReply;
  const done = streams.send({ request: requestOf(person), reply }, { access: ACCESS, name, read });
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
  // An event that the page sees, unlike a comment.
  expect(raw.others).toEqual(Array(4).fill('event: unchanged\ndata: {}\n\n'));
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

it('a service that is down for a moment ends no stream, and a person who may no longer look does', async () => {
  let problem: ConsoleError | null = null;
  const { raw, done } = open(
    () => Promise.resolve('same'),
    () => (problem ? Promise.reject(problem) : Promise.resolve()),
  );
  await settled();
  // Each time for one look.
  for (let time = 0; time < 5; time++) {
    problem = new ConsoleError('unavailable');
    await jest.advanceTimersByTimeAsync(1_000);
    problem = null;
    await jest.advanceTimersByTimeAsync(1_000);
  }
  expect(raw.isEnded).toBe(false);
  problem = new ConsoleError('unauthenticated');
  await jest.advanceTimersByTimeAsync(1_000);
  await done;
  expect(raw.isEnded).toBe(true);
});

it('a stream ends with the second look in a row that fails, so that its page asks and says what is wrong', async () => {
  let problem: ConsoleError | null = null;
  const { raw, streams, done } = open(() => (problem ? Promise.reject(problem) : Promise.resolve('same')));
  await settled();
  problem = new ConsoleError('unavailable');
  await jest.advanceTimersByTimeAsync(1_000);
  expect(raw.isEnded).toBe(false);
  await jest.advanceTimersByTimeAsync(1_000);
  await done;
  expect([raw.isEnded, streams.count]).toEqual([true, 0]);
});

it('a stream whose viewer does not read is cut, so its bytes do not pile up', async () => {
  let value = 0;
  const { raw, streams, done } = open(() => Promise.resolve(++value));
  await settled();
  raw.writableLength = 200_000;
  await jest.advanceTimersByTimeAsync(1_000);
  expect([raw.events.length, raw.destroyed]).toEqual([2, false]);
  raw.writableLength = 300_000;
  await jest.advanceTimersByTimeAsync(1_000);
  await done;
  expect([raw.events.length, raw.destroyed, streams.count]).toEqual([2, true, 0]);
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
  const streams = streamsWith(() => Promise.resolve());
  const begin = (userId: string) => {
    const reply = { raw: new Sent(), hijack: () => {}, getHeaders: () => ({}) } as unknown as FastifyReply;
    return streams.send(
      { request: requestOf(userId), reply },
      { access: ACCESS, name: userId, read: () => after(100).then(() => 1) },
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

describe('streams that show the same', () => {
  const valuesOf = ({ raw }: { raw: Sent }) => raw.events.map(({ value }) => value);

  it('share one look a second, however many they are, and a newcomer has the last one at once', async () => {
    let looks = 0;
    const read = () => Promise.resolve(++looks);
    const first = open(read);
    await settled();
    const all = [first, ...Array.from({ length: 19 }, () => open(read, undefined, { streams: first.streams }))];
    await settled();
    expect([looks, all.map(valuesOf)]).toEqual([1, all.map(() => [1])]);
    await jest.advanceTimersByTimeAsync(2_000);
    expect([looks, all.map(valuesOf)]).toEqual([3, all.map(() => [1, 2, 3])]);
    await jest.advanceTimersByTimeAsync(900);
    const late = open(read, undefined, { streams: first.streams, person: 'late' });
    await settled();
    expect([looks, valuesOf(late)]).toEqual([3, [3]]);
    await jest.advanceTimersByTimeAsync(100);
    expect([looks, valuesOf(late)]).toEqual([4, [3, 4]]);
    first.streams.close();
    await Promise.all([...all, late].map(({ done }) => done));
    expect(jest.getTimerCount()).toBe(0);
  });

  it('look until the last one leaves, and anew after that', async () => {
    let looks = 0;
    const read = () => Promise.resolve(++looks);
    const one = open(read);
    const other = open(read, undefined, { streams: one.streams });
    await settled();
    one.raw.leave();
    await jest.advanceTimersByTimeAsync(1_000);
    expect([looks, valuesOf(one), valuesOf(other)]).toEqual([2, [1], [1, 2]]);
    other.raw.leave();
    await Promise.all([one.done, other.done]);
    expect([jest.getTimerCount(), one.streams.count]).toEqual([0, 0]);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(looks).toBe(2);
    const again = open(read, undefined, { streams: one.streams });
    await settled();
    expect(valuesOf(again)).toEqual([3]);
    again.raw.leave();
    await again.done;
  });

  it('end one by one with the session of their person, and no look is shown after that', async () => {
    let value = 1;
    const ended = new Set<string>();
    const check: Check = (request) =>
      ended.has(request.consoleCaller!.userId)
        ? Promise.reject(new ConsoleError('unauthenticated'))
        : Promise.resolve();
    const read = () => Promise.resolve(value);
    const gone = open(read, check, { streams: streamsWith(check), person: 'gone' });
    const { streams } = gone;
    const stays = open(read, check, { streams, person: 'stays' });
    await settled();
    ended.add('gone');
    value = 2;
    await jest.advanceTimersByTimeAsync(1_000);
    await gone.done;
    expect([gone.raw.isEnded, valuesOf(gone)]).toEqual([true, [1]]);
    expect([stays.raw.isEnded, valuesOf(stays)]).toEqual([false, [1, 2]]);
    streams.close();
    await stays.done;
  });

  it('do not wait for one whose session is looked up slowly, and that one misses no look', async () => {
    let value = 1;
    const check: Check = ({ consoleCaller }) => (consoleCaller!.userId === 'slow' ? after(1_500) : Promise.resolve());
    const read = () => Promise.resolve(value++);
    const quick = open(read, check, { streams: streamsWith(check), person: 'quick' });
    const { streams } = quick;
    const slow = open(read, check, { streams, person: 'slow' });
    await jest.advanceTimersByTimeAsync(4_000);
    expect(valuesOf(quick)).toEqual([1, 2, 3, 4, 5]);
    // Those of 1 s and of 2 s, which is over when the first check is.
    expect(valuesOf(slow)).toEqual([1, 2, 3]);
    streams.close();
    await jest.advanceTimersByTimeAsync(1_500);
    await Promise.all([quick.done, slow.done]);
  });

  it('all end when a look fails for good, and none when a service is down for a moment', async () => {
    let problem: ConsoleError | null = null;
    const read = () => (problem ? Promise.reject(problem) : Promise.resolve('same'));
    const one = open(read);
    const other = open(read, undefined, { streams: one.streams });
    await settled();
    problem = new ConsoleError('unavailable');
    await jest.advanceTimersByTimeAsync(1_000);
    problem = null;
    await jest.advanceTimersByTimeAsync(2_000);
    expect([one.raw.isEnded, other.raw.isEnded]).toEqual([false, false]);
    problem = new ConsoleError('not_found');
    await jest.advanceTimersByTimeAsync(1_000);
    await Promise.all([one.done, other.done]);
    expect([one.raw.isEnded, other.raw.isEnded, one.streams.count]).toEqual([true, true, 0]);
  });

  it('outlive a moment in which PostgreSQL does not say who may see them, and no longer', async () => {
    let value = 1;
    let isAway = false;
    const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const { raw, done } = open(
      () => Promise.resolve(value),
      () => (isAway ? Promise.reject(away) : Promise.resolve()),
    );
    await settled();
    [isAway, value] = [true, 2];
    await jest.advanceTimersByTimeAsync(1_000);
    isAway = false;
    await jest.advanceTimersByTimeAsync(1_000);
    expect([raw.isEnded, valuesOf({ raw })]).toEqual([false, [1, 2]]);
    isAway = true;
    await jest.advanceTimersByTimeAsync(2_000);
    await done;
    expect(raw.isEnded).toBe(true);
  });

  it('are those of one name: others have looks of their own', async () => {
    const one = open(() => Promise.resolve('of one tenant'));
    const other = open(() => Promise.resolve('of another'), undefined, { streams: one.streams, name: 'another' });
    await settled();
    expect([one, other].map(valuesOf)).toEqual([['of one tenant'], ['of another']]);
    one.streams.close();
    await Promise.all([one.done, other.done]);
  });
});
