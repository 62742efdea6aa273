import { newId } from '@tollgate/contracts';
import { PATIENT_CALL_MS, useTestDatabase } from '@tollgate/testing';
import { TOKEN_NANOS, useFixture } from '../suite/store.fixture';
import { PostgresAdmissionStore } from './postgres-admission-store';

const database = useTestDatabase();
const fixture = useFixture(
  async ({ now }) =>
    new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS, ...(now ? { now } : {}) }),
);

it('a process of the previous version recalls claims with their answers in one call', async () => {
  const f = fixture();
  await f.setBalance(10n ** 12n);
  const claims = Array.from({ length: 3 }, () => newId('key'));
  const ids: string[] = [];
  for (const id of claims) ids.push(await f.hold({ claim: { id, fingerprint: `print of ${id}` } }));
  const [kept, empty, running] = claims as [string, string, string];
  await f.store.settle([
    { event: f.event(ids[0]!, TOKEN_NANOS), answer: { claimId: kept, sealed: 'sealed' } },
    { event: f.event(ids[1]!, TOKEN_NANOS), answer: { claimId: empty, sealed: null } },
  ]);
  const asked = [running, newId('key'), kept, empty];
  await database.query('SET search_path = admission,public');
  const rows = await database.query('SELECT * FROM recall($1,$2,$3,$4)', [
    f.nowMs,
    60_000,
    asked.map(() => f.tenantId),
    asked,
  ]);
  const row = (n: number, id: string, code: string, answer: string | null) => ({
    n: String(n),
    code,
    fingerprint: `print of ${id}`,
    age_ms: '0',
    answer,
  });
  expect(rows).toEqual([
    row(1, running, 'running', null),
    row(3, kept, 'settled', 'sealed'),
    row(4, empty, 'settled', null),
  ]);
});
