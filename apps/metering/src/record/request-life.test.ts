import { storedLife as stored } from './request-life';

const storedLife = (life: unknown) => stored({ life });

const life = { key: [600, 1_000_000, 64], tenant: [6_000, 10_000_000, 512], heldNanos: '205200000' };

describe('the life of a request as it is stored', () => {
  it('has the fields that are known and well-formed, and no others', () => {
    const failed = { backend: 'http://gpu/v1', why: 'failed', status: 500, code: 'ECONNRESET' };
    const whole = {
      ...life,
      endNanos: '400400000',
      extensions: 1,
      firstMs: 12,
      failed: [failed],
      asked: 'large',
      late: true,
    };
    expect(JSON.parse(storedLife(whole)!)).toEqual(whole);
    const strange = {
      ...life,
      words: 'of the prompt',
      extensions: -1,
      firstMs: 1.5,
      failed: [{ why: 'words' }, null],
      asked: 5,
      late: 'words',
    };
    expect(JSON.parse(storedLife(strange)!)).toEqual(life);
    const names = [{ backend: 'a\0b', why: 'busy', code: 'words of a backend', status: '500' }];
    expect(JSON.parse(storedLife({ ...life, failed: names })!)).toEqual({ ...life, failed: [{ why: 'busy' }] });
  });

  it('has the id that the caller chose, if it has the right form', () => {
    expect(JSON.parse(stored({ life, callerRequestId: 'order-17' })!)).toEqual({ ...life, caller: 'order-17' });
    expect(JSON.parse(stored({ life, callerRequestId: 'a b' })!)).toEqual(life);
  });

  it('is bounded in length', () => {
    const failed = Array(1_000).fill({ backend: 'x'.repeat(256), why: 'failed', code: 'E'.repeat(40), status: 500 });
    expect(storedLife({ ...life, failed })!.length).toBeLessThan(2_000);
  });

  it('has the first ones and the last one of many failed attempts', () => {
    const attempts = ['busy', 'timeout', 'refused', 'failed'].map((why) => ({ why }));
    expect(JSON.parse(storedLife({ ...life, failed: attempts })!).failed).toEqual(attempts);
    const stopped = [...attempts, { why: 'stopped' }];
    const kept = [...attempts.slice(0, 3), { why: 'stopped' }];
    expect(JSON.parse(storedLife({ ...life, failed: stopped })!).failed).toEqual(kept);
  });

  it.each([
    undefined,
    null,
    'text',
    [],
    { ...life, key: [1, 2] },
    { ...life, tenant: 'x' },
    { ...life, heldNanos: '-1' },
    { ...life, key: [1, 2, '3'] },
  ])('of a malformed one is null: %j', (value) => {
    expect(storedLife(value)).toBeNull();
  });
});
