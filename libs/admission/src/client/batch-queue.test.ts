import { UnavailableError } from '@tollgate/contracts';
import { stat } from 'node:fs';
import { BatchQueue } from './batch-queue';
import { MAX_BATCH_CHARS } from './waiting-line';

/** A call that the test answers by hand. */
function heldCall() {
  const calls: {
    items: readonly number[];
    answer: (results: (string | Error)[]) => void;
    fail: (error: Error) => void;
  }[] = [];
  const call = (items: readonly number[]) =>
    new Promise<(string | Error)[]>((resolve, reject) => calls.push({ items, answer: resolve, fail: reject }));
  return { calls, call };
}

const turn = () => new Promise(setImmediate);
const echo = (items: readonly number[]) => items.map(String);

describe('a batch queue', () => {
  it('sends the items of one turn in one call, and those that gather meanwhile in the next, in order', async () => {
    const { calls, call } = heldCall();
    const queue = new BatchQueue(call);
    const results = [queue.push(1), queue.push(2)];
    await turn();
    results.push(queue.push(3), queue.push(4));
    await turn();
    expect(calls.map(({ items }) => items)).toEqual([[1, 2]]);
    calls[0]!.answer(echo(calls[0]!.items));
    await turn();
    expect(calls.map(({ items }) => items)).toEqual([
      [1, 2],
      [3, 4],
    ]);
    calls[1]!.answer(echo(calls[1]!.items));
    expect(await Promise.all(results)).toEqual(['1', '2', '3', '4']);
    await queue.idle();
  });

  it('delays the next call after one of many items, to fill it, and sends it at once after one of few', async () => {
    const { calls, call } = heldCall();
    const queue = new BatchQueue(call);
    const results = [1, 2, 3, 4].map((item) => queue.push(item));
    await turn();
    results.push(queue.push(5));
    calls[0]!.answer(echo(calls[0]!.items));
    await results[0];
    results.push(queue.push(6), queue.push(7));
    while (calls.length < 2) await turn();
    results.push(queue.push(8));
    calls[1]!.answer(echo(calls[1]!.items));
    await results[4];
    await turn();
    expect(calls.map(({ items }) => items)).toEqual([[1, 2, 3, 4], [5, 6, 7], [8]]);
    calls[2]!.answer(echo(calls[2]!.items));
    await Promise.all(results);
    await queue.idle();
  });

  it('sends fewer items in one call if they or their results are large, and a huge one alone', async () => {
    const calls: number[][] = [];
    const call = (items: readonly number[]) => {
      calls.push([...items]);
      return Promise.resolve(echo(items));
    };
    const large = new BatchQueue<number, string>(call, { charsOf: (item) => item });
    const [half, huge] = [MAX_BATCH_CHARS / 2, MAX_BATCH_CHARS * 2];
    await Promise.all([half, half, 0, 1, huge, 0, 0].map((item) => large.push(item)));
    expect(calls).toEqual([[half, half, 0], [1], [huge], [0, 0]]);
    calls.length = 0;
    const few = new BatchQueue<number, string>(call, { maxItems: 2 });
    await Promise.all([1, 2, 3].map((item) => few.push(item)));
    expect(calls).toEqual([[1, 2], [3]]);
  });

  it('sends at most 256 items in one call', async () => {
    const sizes: number[] = [];
    const queue = new BatchQueue<number, string>(async (items) => {
      sizes.push(items.length);
      return echo(items);
    });
    await Promise.all(Array.from({ length: 600 }, (_, i) => queue.push(i)));
    expect(sizes).toEqual([256, 256, 88]);
  });

  it('refuses items at once when 10,000 are waiting', async () => {
    const { calls, call } = heldCall();
    const queue = new BatchQueue(call);
    const waiting = Array.from({ length: 10_000 }, (_, i) => queue.push(i));
    await expect(queue.push(10_000)).rejects.toThrow(UnavailableError);
    await turn();
    for (let i = 0; i < 40; i++) {
      while (calls.length <= i) await turn();
      calls[i]!.answer(echo(calls[i]!.items));
    }
    expect(await Promise.all(waiting)).toHaveLength(10_000);
  });

  it('fails only the item whose result is an error', async () => {
    const queue = new BatchQueue<number, string>(async (items) =>
      items.map((item) => (item === 2 ? new RangeError('two') : String(item))),
    );
    const results = await Promise.allSettled([queue.push(1), queue.push(2), queue.push(3)]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  it('repeats a call once when the store did not answer', async () => {
    let tries = 0;
    const queue = new BatchQueue<number, string>(async (items) => {
      if (++tries === 1) throw new UnavailableError('gone');
      return echo(items);
    });
    expect(await queue.push(1)).toBe('1');
  });

  it('refuses the second failure and everything queued behind it, and serves later items again', async () => {
    const { calls, call } = heldCall();
    const queue = new BatchQueue(call);
    const first = queue.push(1);
    await turn();
    const results = Promise.allSettled([first, queue.push(2)]);
    calls[0]!.fail(new UnavailableError('gone'));
    await turn();
    calls[1]!.fail(new UnavailableError('gone'));
    expect((await results).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(calls.map(({ items }) => items)).toEqual([[1], [1]]);
    const later = queue.push(3);
    await turn();
    calls[2]!.answer(['3']);
    expect(await later).toBe('3');
  });

  it('passes any other error to the items of that call only, and does not repeat the call', async () => {
    const { calls, call } = heldCall();
    const queue = new BatchQueue(call);
    const first = queue.push(1);
    await turn();
    const results = Promise.allSettled([first, queue.push(2)]);
    calls[0]!.fail(new TypeError('a bug'));
    await turn();
    calls[1]!.answer(['2']);
    expect((await results).map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  });
});

describe('a batch queue whose store falls silent', () => {
  const ANSWERS_WITHIN_MS = 950;
  /** As a RedisLink does: it gives up a call after this time. */
  const CALL_MS = 700;
  const late: [number, string][] = [];
  let answerIn: (items: readonly number[]) => number | null;
  let queue: BatchQueue<number, string>;

  beforeEach(() => {
    jest.useFakeTimers();
    late.length = 0;
    const call = (items: readonly number[]) =>
      new Promise<string[]>((resolve, reject) => {
        const inMs = answerIn(items);
        if (inMs === null) setTimeout(() => reject(new UnavailableError('no answer in time')), CALL_MS);
        else setTimeout(() => resolve(echo(items)), inMs);
      });
    const onLate = (item: number, result: string) => void late.push([item, result]);
    queue = new BatchQueue(call, { answersWithinMs: ANSWERS_WITHIN_MS, onLate });
  });
  afterEach(() => jest.useRealTimers());

  /** The outcome of an item, and its time since its own start. */
  function push(item: number): { state: string; tookMs: number } {
    const pushedMs = performance.now();
    const outcome = { state: 'waits', tookMs: 0 };
    const settle = (state: string) => Object.assign(outcome, { state, tookMs: performance.now() - pushedMs });
    queue.push(item).then(settle, (error: Error) => settle(error.name));
    return outcome;
  }

  it('refuses each item within a second of its own start, even if another call was in progress', async () => {
    answerIn = (items) => (items.includes(1) ? CALL_MS - 10 : null);
    const first = push(1);
    await jest.advanceTimersByTimeAsync(10);
    const second = push(2);
    await jest.advanceTimersByTimeAsync(800);
    const third = push(3);
    await jest.advanceTimersByTimeAsync(2_000);
    expect(first).toMatchObject({ state: '1' });
    expect([second.state, third.state]).toEqual(['UnavailableError', 'UnavailableError']);
    expect(Math.max(second.tookMs, third.tookMs)).toBeLessThan(1_000);
  });

  it('does not repeat a call beyond that time', async () => {
    answerIn = () => null;
    const only = push(1);
    await jest.advanceTimersByTimeAsync(3_000);
    expect(only).toMatchObject({ state: 'UnavailableError' });
    expect(only.tookMs).toBeLessThan(1_000);
  });

  it('reports a result that arrived after its refusal', async () => {
    answerIn = ([item]) => ({ 1: 900, 2: 40, 3: 1_200 })[item!] ?? 0;
    const first = push(1);
    await jest.advanceTimersByTimeAsync(10);
    const second = push(2);
    await jest.advanceTimersByTimeAsync(1_500);
    const third = push(3);
    await jest.advanceTimersByTimeAsync(1_500);
    expect([first.state, second.state, third.state]).toEqual(['1', '2', 'UnavailableError']);
    expect(late).toEqual([[3, '3']]);
  });

  it.each([0, 300, 690, 700, 900, 940, 949])(
    'refuses each item at the end of its own time, whatever is queued before it: calls answered after %i ms, then none',
    async (answeredMs) => {
      const silentFromMs = performance.now() + 2_000;
      answerIn = () => (performance.now() < silentFromMs ? answeredMs : null);
      const outcomes: ReturnType<typeof push>[] = [];
      for (let item = 0; item < 400; item++) {
        outcomes.push(push(item));
        await jest.advanceTimersByTimeAsync(10);
      }
      await jest.advanceTimersByTimeAsync(5_000);
      expect(outcomes.filter(({ state }) => state === 'waits')).toEqual([]);
      expect(Math.max(...outcomes.map(({ tookMs }) => tookMs))).toBeLessThan(1_000);
    },
  );

  it('does not refuse an item because earlier items of its call ran out of time', async () => {
    answerIn = ([item]) => (item === 1 ? 900 : 100);
    const first = push(1);
    await jest.advanceTimersByTimeAsync(10);
    const second = push(2);
    await jest.advanceTimersByTimeAsync(800);
    const third = push(3);
    await jest.advanceTimersByTimeAsync(150);
    // Arrived during a call that was given up for the second item alone.
    const fourth = push(4);
    await jest.advanceTimersByTimeAsync(2_000);
    expect([first.state, second.state, third.state, fourth.state]).toEqual(['1', 'UnavailableError', '3', '4']);
    expect(second.tookMs).toBeLessThan(1_000);
    expect(late).toEqual([[2, '2']]);
  });

  it('skips items whose time is over, and does not refuse the items behind them', async () => {
    const sent: number[] = [];
    answerIn = (items) => {
      sent.push(...items);
      return items.includes(0) ? 940 : 20;
    };
    push(0);
    await jest.advanceTimersByTimeAsync(1);
    const many = Array.from({ length: 300 }, (_, index) => push(index + 1));
    await jest.advanceTimersByTimeAsync(900);
    const young = push(1_000);
    await jest.advanceTimersByTimeAsync(2_000);
    expect(new Set(many.map(({ state }) => state))).toEqual(new Set(['UnavailableError']));
    expect(Math.max(...many.map(({ tookMs }) => tookMs))).toBeLessThan(1_000);
    expect(young.state).toBe('1000');
    expect(sent).toEqual([0, ...Array.from({ length: 256 }, (_, index) => index + 1), 1_000]);
  });
});

it('a batch queue reads pending answers after a standstill of its own process, before it refuses items', async () => {
  const queue = new BatchQueue<number, string>(
    (items) => new Promise((resolve) => stat(__filename, () => resolve(echo(items)))),
    { answersWithinMs: 300 },
  );
  const asked = queue.push(1);
  await turn();
  const until = performance.now() + 600;
  while (performance.now() < until);
  expect(await asked).toBe('1');
});
