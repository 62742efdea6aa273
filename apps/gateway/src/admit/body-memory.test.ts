import { BodyMemory } from './body-memory';

const memory = () => new BodyMemory({ maxBytes: 100, maxBytesPerKey: 40 });

describe('the memory of bodies', () => {
  it('is a budget of each key', () => {
    const bodies = memory();
    const [first, second] = [bodies.open('a'), bodies.open('a')];
    expect([first.growTo(30), second.growTo(11), second.growTo(10)]).toEqual([null, 'key', null]);
    expect(first.growTo(31)).toBe('key');
    expect(bodies.open('b').growTo(40)).toBeNull();
  });

  it('and of all', () => {
    const bodies = memory();
    for (const key of ['a', 'b']) expect(bodies.open(key).growTo(40)).toBeNull();
    expect(bodies.open('c').growTo(21)).toBe('all');
    expect(bodies.open('c').growTo(20)).toBeNull();
  });

  it('is given back whole, once, and what did not fit is not held', () => {
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

  it('of a key is never more than of all', () => {
    expect(new BodyMemory({ maxBytes: 20, maxBytesPerKey: 40 }).maxBytesPerKey).toBe(20);
  });
});
