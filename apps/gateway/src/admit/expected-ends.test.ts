import type { ExpectedEnd } from '@tollgate/admission';
import { UnavailableError } from '@tollgate/contracts';
import fs from 'node:fs';
import { ExpectedEnds } from './expected-ends';

const OF_TENANT = { tenantId: 'ten_a', keyId: null };

afterEach(() => jest.restoreAllMocks());

/** A store that knows these ends, and counts how often it is asked. */
function store(ends: ExpectedEnd[]) {
  const asked: string[] = [];
  const expectedEnds = (tenantId: string) => {
    asked.push(tenantId);
    return Promise.resolve(ends);
  };
  return { asked, ends: new ExpectedEnds({ expectedEnds }) };
}

describe('the expected end of running requests', () => {
  it('is the soonest of the tenant, or of the key', async () => {
    const { ends, asked } = store([
      { keyId: 'key_a', endsInMs: 9_000 },
      { keyId: 'key_b', endsInMs: 4_000.5 },
    ]);
    expect(await ends.soonestMs(OF_TENANT, 0)).toBe(4_001);
    expect(await ends.soonestMs({ tenantId: 'ten_a', keyId: 'key_a' }, 0)).toBe(9_000);
    expect(await ends.soonestMs({ tenantId: 'ten_a', keyId: 'key_c' }, 0)).toBeNull();
    expect(asked).toEqual(['ten_a']);
  });

  it('is asked of the store once a second, however many requests are refused', async () => {
    const { ends, asked } = store([{ keyId: 'key_a', endsInMs: 5_000 }]);
    const said = await Promise.all(Array.from({ length: 50 }, (_, ms) => ends.soonestMs(OF_TENANT, ms * 10)));
    // The answer ages with the clock.
    expect([said[0], said[49], await ends.soonestMs(OF_TENANT, 999)]).toEqual([5_000, 4_510, 4_001]);
    expect(asked).toHaveLength(1);
    await ends.soonestMs({ tenantId: 'ten_b', keyId: null }, 999);
    expect(await ends.soonestMs(OF_TENANT, 1_000)).toBe(5_000);
    expect(asked).toEqual(['ten_a', 'ten_b', 'ten_a']);
  });

  it('is from a second to a minute', async () => {
    const said = [0, 999, 60_001, 10 ** 7].map((endsInMs) =>
      store([{ keyId: 'key_a', endsInMs }]).ends.soonestMs(OF_TENANT, 0),
    );
    expect(await Promise.all(said)).toEqual([1_000, 1_000, 60_000, 60_000]);
  });

  it('is unknown while the store does not answer, says so once, and is known again afterwards', async () => {
    let isAway = true;
    let asked = 0;
    const lines: string[] = [];
    jest.spyOn(fs, 'writeSync').mockImplementation((_, text: unknown) => {
      lines.push(String(text));
      return Buffer.byteLength(String(text));
    });
    const ends = new ExpectedEnds({
      expectedEnds: () => {
        asked += 1;
        return isAway
          ? Promise.reject(new UnavailableError('no answer'))
          : Promise.resolve([{ keyId: 'key_a', endsInMs: 7_000 }]);
      },
    });
    expect([await ends.soonestMs(OF_TENANT, 0), await ends.soonestMs(OF_TENANT, 1_000)]).toEqual([null, null]);
    isAway = false;
    expect(await ends.soonestMs(OF_TENANT, 2_000)).toBe(7_000);
    expect(asked).toBe(3);
    expect(lines).toEqual([expect.stringContaining('"reason":"no answer"')]);
  });
});
