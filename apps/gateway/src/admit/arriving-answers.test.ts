import type { AnswerShare, ArrivingAnswers } from './arriving-answers';
import { BodyMemory } from './body-memory';

const LIMITS = { perTenant: 20, all: 50 };
let arriving: ArrivingAnswers;
let resumed: string[];
beforeEach(() => {
  ({ arriving } = new BodyMemory({ arriving: LIMITS }));
  resumed = [];
});

/** A large answer of this tenant. Each has its own key. */
function open(tenantId: string, name = tenantId): AnswerShare {
  return arriving.open({ keyId: `key of ${name}`, tenantId }, () => resumed.push(name));
}

/** The names of the answers that went on since. */
async function goneOn(): Promise<string[]> {
  await new Promise(setImmediate);
  return resumed.splice(0);
}

const isEmpty = () => !arriving.memory.isFull && arriving.memory.fullFor({ keyId: '', tenantId: 'a' }, 20) === null;

describe('the memory of arriving answers', () => {
  it('lets all go on while there is room', () => {
    const [a, b] = [open('a'), open('a')];
    expect([a.growTo(10), b.growTo(10)]).toEqual([true, true]);
  });

  it('lets only the oldest answer of a tenant go on beyond its limit, however late it grows', async () => {
    const [oldest, second, third] = [open('a', '1'), open('a', '2'), open('a', '3')];
    expect([second.growTo(15), third.growTo(6), oldest.growTo(5)]).toEqual([true, false, true]);
    expect([second.growTo(16), oldest.growTo(96), third.isWaiting]).toEqual([false, true, true]);
    expect(await goneOn()).toEqual([]);
  });

  it('delays no other tenant for one that is beyond its limit', () => {
    expect(open('a').growTo(1_000)).toBe(true);
    expect(open('a').growTo(1)).toBe(false);
    expect([open('b').growTo(20), open('c').growTo(10)]).toEqual([true, true]);
  });

  it('lets only the oldest answer of all go on beyond the limit of all', async () => {
    const [a, b, c] = ['a', 'b', 'c'].map((tenant) => open(tenant));
    expect([b!.growTo(20), c!.growTo(20), a!.growTo(20)]).toEqual([true, true, true]);
    expect([b!.growTo(21), c!.growTo(21), a!.growTo(96)]).toEqual([false, false, true]);
    a!.release();
    // The limit of all has room again, and each is the oldest of its tenant.
    expect(await goneOn()).toEqual(['b', 'c']);
  });

  it('goes to those who wait in their order, as far as it reaches', async () => {
    const blocker = open('a', 'blocker');
    blocker.growTo(30);
    const names = ['1', '2', '3'];
    const takes: Record<string, AnswerShare> = {};
    for (const name of names)
      takes[name] = arriving.open({ keyId: 'k', tenantId: 'a' }, () => {
        resumed.push(name);
        takes[name]!.growTo(15);
      });
    // The last one asks first.
    for (const name of names.toReversed()) expect(takes[name]!.growTo(1)).toBe(false);
    blocker.release();
    // The first two take up the memory at once.
    expect(await goneOn()).toEqual(['1', '2']);
    takes['2']!.release();
    expect(await goneOn()).toEqual(['3']);
    takes['1']!.release();
    takes['3']!.release();
    expect(isEmpty()).toBe(true);
  });

  it('stays with an answer that has arrived, which is still the oldest', async () => {
    const [first, second] = [open('a', '1'), open('a', '2')];
    expect([first.growTo(21), second.growTo(1)]).toEqual([true, false]);
    first.arrived();
    expect([second.growTo(2), await goneOn()]).toEqual([false, []]);
    first.release();
    expect(await goneOn()).toEqual(['2']);
  });

  it('is released once and completely, also by one that waits, which is not resumed any more', async () => {
    const [first, second] = [open('a', '1'), open('a', '2')];
    expect([first.growTo(21), second.growTo(1)]).toEqual([true, false]);
    second.release();
    first.release();
    first.release();
    expect([await goneOn(), isEmpty()]).toEqual([[], true]);
    expect([open('a').growTo(20), isEmpty()]).toEqual([true, false]);
  });

  it('never deadlocks: whatever grows and ends in whatever order, one answer may go on', async () => {
    let seed = 7;
    const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
    const open_ = new Map<AnswerShare, number>();
    for (let step = 0; step < 3_000; step += 1) {
      const shares = [...open_.keys()];
      const going = shares.filter(({ isWaiting }) => !isWaiting);
      if (shares.length > 0) expect(going.length).toBeGreaterThan(0);
      if (shares.length < 12 && random(3) === 0) open_.set(open(`t${random(5)}`), 0);
      else if (going.length > 0) {
        const share = going[random(going.length)]!;
        const bytes = open_.get(share)! + random(12);
        if (bytes < 40) {
          open_.set(share, bytes);
          share.growTo(bytes);
        } else {
          share.release();
          open_.delete(share);
          await goneOn();
        }
      }
    }
    for (const share of open_.keys()) share.release();
    expect(isEmpty()).toBe(true);
  });
});
