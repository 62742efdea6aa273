import { ConsoleError } from '../../http/errors';
import { after, open, settled, streamsWith, type Check, useTestClock, valuesOf } from './live-streams.fixture';

useTestClock();

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

describe('streams that show the same', () => {
  it('look until the last one leaves, and again when another one comes', async () => {
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
});
