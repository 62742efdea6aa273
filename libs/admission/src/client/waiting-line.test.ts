import { UnavailableError } from '@tollgate/contracts';
import { BatchQueue } from './batch-queue';
import { MAX_WAITING_ITEMS_PER_OWNER, WaitingLine, type LineOptions } from './waiting-line';

interface Item {
  of: string;
  n: number;
  chars?: number;
}

const LARGE = 10;
const byOwner: LineOptions<Item> = {
  ownerOf: ({ of }) => of,
  charsOf: ({ chars = LARGE }) => chars,
  maxChars: 2 * LARGE,
  maxItems: 4,
};

function lineOf(items: readonly Item[], options = byOwner) {
  const line = new WaitingLine<Item, string>(options);
  const add = (item: Item, untilMs = Infinity) => {
    const waiting = { item, untilMs, refused: false, resolve: () => {}, reject: () => {} };
    line.push(waiting);
    return waiting;
  };
  for (const item of items) add(item);
  const take = () => line.takeBatch().map(({ item: { of, n } }) => `${of}${n}`);
  return { line, add, take };
}

const some = (of: string, count: number, chars?: number): Item[] =>
  Array.from({ length: count }, (_, n) => ({ of, n: n + 1, ...(chars !== undefined && { chars }) }));

describe('a line in which owners take turns', () => {
  it('gives an owner one place of each round, whatever another one has put before it', () => {
    const { add, take } = lineOf(some('a', 300));
    expect(take()).toEqual(['a1', 'a2']);
    add({ of: 'b', n: 1 });
    expect(take()).toEqual(['a3', 'b1']);
    add({ of: 'b', n: 2 });
    add({ of: 'c', n: 1 });
    expect(take()).toEqual(['a4', 'b2']);
    expect(take()).toEqual(['a5', 'c1']);
  });

  it('starves no owner, however many others come with single items', () => {
    const { add, take } = lineOf(some('a', 3));
    const seen: string[] = [];
    for (let n = 1; n <= 6; n++) {
      for (const owner of ['b', 'c', 'd']) add({ of: owner, n });
      seen.push(...take());
    }
    expect(seen.filter((item) => item.startsWith('a')).length).toBeGreaterThanOrEqual(2);
  });

  it('takes items in their order, within the most items and characters of a call, and a huge one alone', () => {
    const { take } = lineOf([...some('a', 3, 1), ...some('b', 3, 1), ...some('c', 1, 100), ...some('d', 1, 20)]);
    // d1 comes after the turns of the others.
    expect([take(), take(), take(), take(), take()]).toEqual([
      ['a1', 'b1'],
      ['c1'],
      ['d1'],
      ['a2', 'a3', 'b2', 'b3'],
      [],
    ]);
  });

  it('is full for an owner with many items, and not for others', () => {
    const { line, take } = lineOf(some('a', MAX_WAITING_ITEMS_PER_OWNER, 1));
    expect([line.isFullFor({ of: 'a', n: 0 }), line.isFullFor({ of: 'b', n: 0 })]).toEqual([true, false]);
    take();
    expect(line.isFullFor({ of: 'a', n: 0 })).toBe(false);
  });

  it('forgets the items whose time is over, and those that were taken at once', () => {
    const { line, add, take } = lineOf([]);
    const due = [add({ of: 'a', n: 1 }, 0), add({ of: 'b', n: 1 }, 0)];
    add({ of: 'a', n: 2 });
    line.refuseDue();
    expect(due.map(({ refused }) => refused)).toEqual([true, true]);
    add({ of: 'b', n: 2 });
    expect(take()).toEqual(['a2', 'b2']);
    for (const item of some('a', 3)) add(item);
    expect(line.takeAll()).toHaveLength(3);
    expect(line.length).toBe(0);
    add({ of: 'b', n: 3 });
    expect(take()).toEqual(['b3']);
  });
});

it('a queue by turns refuses the items of an owner with too many, and answers those of another', async () => {
  const queue = new BatchQueue<Item, string>(
    (items) => Promise.resolve(items.map(({ of, n }) => `${of}${n}`)),
    byOwner,
  );
  const all = some('a', MAX_WAITING_ITEMS_PER_OWNER, 1).map((item) => queue.push(item));
  await expect(queue.push({ of: 'a', n: 0 })).rejects.toThrow(UnavailableError);
  expect(await queue.push({ of: 'b', n: 1, chars: 1 })).toBe('b1');
  expect(await Promise.all(all)).toEqual(some('a', MAX_WAITING_ITEMS_PER_OWNER).map(({ n }) => `a${n}`));
});
