import { ConfigError } from '../config/read';
import { readSettings } from '../config/settings';
import { Models } from './models';

const FAILS_ONCE = [{ kind: 'status', status: 500, first: 1 }];

describe('the tag of a request', () => {
  it('has at most 200 characters, because the simulator remembers the series of each', () => {
    const models = new Models(readSettings({}));
    models.take('m', { tag: 'a'.repeat(200) });
    expect(() => models.take('m', { tag: 'a'.repeat(201) })).toThrow(ConfigError);
    expect(() => models.take('m', { tag: 'a'.repeat(9_000_000) })).toThrow(
      'simulator.tag: must have at most 200 characters',
    );
  });

  it('separates series also when two tags differ only in their last character', () => {
    const models = new Models(readSettings({}));
    const status = (end: string) => models.take('m', { tag: 'a'.repeat(199) + end, faults: FAILS_ONCE }).faults.status;
    expect(['x', 'x', 'y', 'y'].map(status)).toEqual([500, null, 500, null]);
  });
});

describe('the memory of a simulator', () => {
  it('does not grow with the size of the simulator fields', () => {
    const models = new Models(readSettings({}));
    const faults = Array.from({ length: 16 }, () => ({ kind: 'cut', afterChunks: 1, first: 1, every: 1 }));
    const set = jest.spyOn(Map.prototype, 'set');
    models.take('m', { faults, tag: 'a'.repeat(200) });
    const keys = set.mock.calls.map(([key]) => String(key));
    set.mockRestore();
    expect(keys.length).toBeGreaterThan(0);
    expect(Math.max(...keys.map((key) => key.length))).toBeLessThan(100);
  });
});
