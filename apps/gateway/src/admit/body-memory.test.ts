import { BodyMemory } from './body-memory';

const memory = () => new BodyMemory({ maxBytes: 100, maxBytesPerKey: 40 });

describe('the memory of bodies', () => {
  it('is limited for each key', () => {
    const bodies = memory();
    const [first, second] = [bodies.open('a'), bodies.open('a')];
    expect([first.growTo(30), second.growTo(11), second.growTo(10)]).toEqual([null, 'key', null]);
    expect(first.growTo(31)).toBe('key');
    expect(bodies.open('b').growTo(40)).toBeNull();
  });

  it('is limited for all keys together', () => {
    const bodies = memory();
    for (const key of ['a', 'b']) expect(bodies.open(key).growTo(40)).toBeNull();
    expect(bodies.open('c').growTo(21)).toBe('all');
    expect(bodies.open('c').growTo(20)).toBeNull();
  });

  it('is released once and completely, and a share that does not fit is not taken', () => {
    const bodies = memory();
    const share = bodies.open('a');
    expect([share.growTo(25), share.growTo(41), share.bytes]).toEqual([null, 'key', 25]);
    expect([share.growTo(10), share.bytes]).toEqual([null, 25]);
    share.release();
    share.release();
    expect(share.bytes).toBe(0);
    const all = ['a', 'b'].map((key) => bodies.open(key).growTo(40));
    expect([...all, bodies.open('c').growTo(20)]).toEqual([null, null, null]);
  });

  it('of one key is at most that of all keys', () => {
    expect(new BodyMemory({ maxBytes: 20, maxBytesPerKey: 40 }).maxBytesPerKey).toBe(20);
    expect(new BodyMemory({ maxBytes: 20, maxBytesPerBody: 40 }).maxBytesPerBody).toBe(20);
    // Three of the largest bodies of a key fit, whatever their limit is.
    expect(new BodyMemory({ maxBytesPerBody: 64 * 2 ** 20 }).maxBytesPerKey).toBe(192 * 2 ** 20);
  });
});
