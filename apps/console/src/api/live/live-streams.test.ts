import type { FastifyReply } from 'fastify';
import {
  ACCESS,
  after,
  open,
  requestOf,
  Sent,
  settled,
  streamsWith,
  type Check,
  useTestClock,
  valuesOf,
} from './live-streams.fixture';

useTestClock();
const MAX_AGE_MS = 2_000;

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

it('unchanged values are not sent again, and a quiet stream is kept open', async () => {
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

  it('do not wait for one whose session is looked up slowly, and that one misses no look', async () => {
    let value = 1;
    const check: Check = ({ consoleCaller }) => (consoleCaller!.userId === 'slow' ? after(1_500) : Promise.resolve());
    const read = () => Promise.resolve(value++);
    const quick = open(read, check, { streams: streamsWith(check), person: 'quick' });
    const { streams } = quick;
    const slow = open(read, check, { streams, person: 'slow' });
    await jest.advanceTimersByTimeAsync(4_000);
    expect(valuesOf(quick)).toEqual([1, 2, 3, 4, 5]);
    // The looks of 1 s and of 2 s, which is over when the first check is.
    expect(valuesOf(slow)).toEqual([1, 2, 3]);
    streams.close();
    await jest.advanceTimersByTimeAsync(1_500);
    await Promise.all([quick.done, slow.done]);
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
