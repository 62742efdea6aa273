import { UnavailableError } from '@tollgate/contracts';
import { BatchQueue } from './batch-queue';

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
  it('sends what arrived in one turn together, and what gathers meanwhile as the next call, in order', async () => {
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

  it('sends at most 256 in one call', async () => {
    const sizes: number[] = [];
    const queue = new BatchQueue<number, string>(async (items) => {
      sizes.push(items.length);
      return echo(items);
    });
    await Promise.all(Array.from({ length: 600 }, (_, i) => queue.push(i)));
    expect(sizes).toEqual([256, 256, 88]);
  });

  it('refuses at once what is more than 10,000 waiting', async () => {
    const { calls, call } = heldCall();
    const queue = new BatchQueue(call);
    const waiting = Array.from({ length: 10_000 }, (_, i) => queue.push(i));
    await expect(queue.push(10_000)).rejects.toThrow(UnavailableError);
    await turn();
    for (let i = 0; i < 40; i++) {
      calls[i]!.answer(echo(calls[i]!.items));
      await turn();
    }
    expect(await Promise.all(waiting)).toHaveLength(10_000);
  });

  it('fails one alone where an error stands in its place', async () => {
    const queue = new BatchQueue<number, string>(async (items) =>
      items.map((item) => (item === 2 ? new RangeError('two') : String(item))),
    );
    const results = await Promise.allSettled([queue.push(1), queue.push(2), queue.push(3)]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  it('tries a call once more when the store did not answer', async () => {
    let tries = 0;
    const queue = new BatchQueue<number, string>(async (items) => {
      if (++tries === 1) throw new UnavailableError('gone');
      return echo(items);
    });
    expect(await queue.push(1)).toBe('1');
  });

  it('then refuses it and all that waited behind it, and serves again what comes later', async () => {
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

  it('gives any other error to the items of that call only, without another try', async () => {
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
