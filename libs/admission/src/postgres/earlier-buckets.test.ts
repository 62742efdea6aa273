import { PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { Fixture, WIDE } from '../suite/store.fixture';
import { PostgresAdmissionStore } from './postgres-admission-store';

const database = useTestDatabase();
const MONTH_US = 30 * 86_400_000_000;

it('a bucket of an earlier release that is 30 days ahead blocks its key for a minute at most', async () => {
  const f = new Fixture(async ({ now }) => {
    const store = new PostgresAdmissionStore({
      url: database.url,
      callTimeoutMs: PATIENT_CALL_MS,
      ...(now && { now }),
    });
    await store.start();
    return store;
  });
  await f.setUp();
  try {
    await f.setBalance(10n ** 15n);
    const limits = { ...WIDE, requestsPerMinute: 6, tokensPerMinute: 60 };
    const limited = { keyLimits: limits, tenantLimits: limits };
    await f.hold(limited);
    for (const table of ['tenant', 'key_state'])
      await database.query(
        `UPDATE admission.${table} SET requests_full_us = requests_full_us + $1,
           tokens_full_us = tokens_full_us + $1, buckets_written_us = 0`,
        [MONTH_US],
      );
    expect(await f.admit(f.request(limited))).toMatchObject({ kind: 'refused' });
    f.nowMs += 60_000;
    expect(await f.admit(f.request(limited))).toMatchObject({ kind: 'held' });
  } finally {
    await f.tearDown();
  }
});
