import { BodyMemory } from './body-memory';

/** Each key has its own tenant, unless one is named. */
const of = (keyId: string, tenantId = `tenant of ${keyId}`) => ({ keyId, tenantId });
const memory = () => new BodyMemory({ maxBytes: 100, maxBytesPerKey: 40 });

describe('the memory of bodies', () => {
  it('is limited for each key', () => {
    const bodies = memory();
    const [first, second] = [bodies.open(of('a')), bodies.open(of('a'))];
    expect([first.growTo(30), second.growTo(11), second.growTo(10)]).toEqual([null, 'key', null]);
    expect(first.growTo(31)).toBe('key');
    expect(bodies.open(of('b')).growTo(40)).toBeNull();
  });

  it('is limited for all keys together', () => {
    const bodies = memory();
    for (const key of ['a', 'b']) expect(bodies.open(of(key)).growTo(40)).toBeNull();
    expect(bodies.open(of('c')).growTo(21)).toBe('all');
    expect(bodies.open(of('c')).growTo(20)).toBeNull();
  });

  it('is limited for each tenant to a quarter, whatever the number of its keys is', () => {
    const bodies = new BodyMemory({ maxBytes: 200, maxBytesPerKey: 40, maxBytesPerBody: 40 });
    const shares = ['a', 'b', 'c'].map((key) => bodies.open(of(key, 'one')));
    expect([shares[0]!.growTo(30), shares[1]!.growTo(20), shares[2]!.growTo(1)]).toEqual([null, null, 'tenant']);
    expect(bodies.open(of('d')).growTo(40)).toBeNull();
    shares[1]!.release();
    expect(shares[2]!.growTo(20)).toBeNull();
  });

  it('is released in part once less of a body is kept', () => {
    const bodies = memory();
    const share = bodies.open(of('a'));
    expect(share.growTo(40)).toBeNull();
    share.shrinkTo(50);
    expect(share.bytes).toBe(40);
    share.shrinkTo(5);
    expect([share.bytes, bodies.open(of('a')).growTo(35)]).toEqual([5, null]);
  });

  it('is released once and completely, and a share that does not fit is not taken', () => {
    const bodies = memory();
    const share = bodies.open(of('a'));
    expect([share.growTo(25), share.growTo(41), share.bytes]).toEqual([null, 'key', 25]);
    expect([share.growTo(10), share.bytes]).toEqual([null, 25]);
    share.release();
    share.release();
    expect(share.bytes).toBe(0);
    const all = ['a', 'b'].map((key) => bodies.open(of(key)).growTo(40));
    expect([...all, bodies.open(of('c')).growTo(20)]).toEqual([null, null, null]);
  });

  it('of one key is at most that of all keys', () => {
    expect(new BodyMemory({ maxBytes: 20, maxBytesPerKey: 40 }).limits.perKey).toBe(20);
    expect(new BodyMemory({ maxBytes: 20, maxBytesPerBody: 40 }).maxBytesPerBody).toBe(20);
    // Three of the largest bodies of a key fit, whatever their limit is.
    expect(new BodyMemory({ maxBytesPerBody: 64 * 2 ** 20 }).limits.perKey).toBe(192 * 2 ** 20);
  });
});

describe('the memory of unread answers', () => {
  it('may exceed its limits, but what one tenant has beyond its own limit is not counted against the others', () => {
    const { answers } = new BodyMemory({ answers: { perKey: 10, perTenant: 20, all: 30 } });
    answers.add(of('a', 'one'), 50);
    answers.add(of('b', 'one'), 50);
    expect(answers.fullFor(of('a', 'one'), 0)).toBe('key');
    expect(answers.fullFor(of('c', 'one'), 0)).toBe('tenant');
    expect([answers.fullFor(of('d'), 10), answers.fullFor(of('d'), 11)]).toEqual([null, 'key']);
    answers.add(of('e', 'other'), 8);
    answers.add(of('f', 'other'), 8);
    expect(answers.fullFor(of('d'), 0)).toBe('all');
    answers.add(of('a', 'one'), -50);
    expect([answers.fullFor(of('d'), 0), answers.fullFor(of('c', 'one'), 0)]).toEqual(['all', 'tenant']);
    answers.add(of('b', 'one'), -50);
    expect([answers.fullFor(of('c', 'one'), 10), answers.fullFor(of('d'), 10)]).toEqual([null, null]);
  });
});
