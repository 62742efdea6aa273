import { eventually, useTestDatabase } from '@tollgate/testing';
import { ConsoleDataSource, openConsoleDatabase } from '../database';
import { CODE_STEP_S, codeAt, takeStep } from './code-steps';

const SECRET = 'the secret of the authenticator';
const FACTOR = { userId: 'ada', stored: 'encrypted', secret: SECRET };
const PRESENT = 50_000_000;

let databases: ConsoleDataSource[];
afterAll(() => Promise.all(databases.map((database) => database.destroy())));
const test = useTestDatabase();
beforeAll(async () => {
  // As two processes of the console.
  databases = await Promise.all([1, 2].map(() => openConsoleDatabase(test.url)));
  await test.query(
    `INSERT INTO console."user" ("id", "name", "email", "emailVerified") VALUES ('ada', 'Ada', 'a@example.com', true)`,
  );
});
beforeEach(async () => {
  jest.spyOn(Date, 'now').mockReturnValue(PRESENT * CODE_STEP_S * 1000);
  await test.query('DELETE FROM console."twoFactor"');
  await test.query(
    `INSERT INTO console."twoFactor" ("id", "secret", "backupCodes", "userId") VALUES ('f', 'encrypted', '', 'ada')`,
  );
});
afterEach(() => jest.restoreAllMocks());

const takes = (code: string, factor = FACTOR, database = databases[0]!) => takeStep(database.pool, factor, code);

it('computes the codes of RFC 6238', () => {
  const secret = '12345678901234567890';
  const timesS = [59, 1_111_111_109, 1_234_567_890, 20_000_000_000];
  const codes = timesS.map((timeS) => codeAt(secret, Math.floor(timeS / CODE_STEP_S)));
  expect(codes).toEqual(['287082', '081804', '005924', '353130']);
});

it('accepts each code once, and after it only codes of later steps', async () => {
  const at = (steps: number) => codeAt(SECRET, PRESENT + steps);
  expect(await takes(at(0))).toBe(true);
  expect([await takes(at(0)), await takes(at(-1))]).toEqual([false, false]);
  expect([await takes(at(1)), await takes(at(1)), await takes(at(0))]).toEqual([true, false, false]);
});

it('accepts codes of the present step and its neighbours only', async () => {
  for (const steps of [-2, 2]) expect(await takes(codeAt(SECRET, PRESENT + steps))).toBe(false);
  for (const steps of [-1, 0, 1]) expect(await takes(codeAt(SECRET, PRESENT + steps))).toBe(true);
});

it('takes no step of a secret that is no longer that of the person', async () => {
  expect(await takes(codeAt(SECRET, PRESENT), { ...FACTOR, stored: 'former' })).toBe(false);
  expect(await takes(codeAt(SECRET, PRESENT))).toBe(true);
});

it('accepts a code once, although two processes have it at the same time', async () => {
  await test.query('BEGIN');
  await test.query('SELECT 1 FROM console."twoFactor" FOR UPDATE');
  const taken = Promise.all(databases.map((database) => takes(codeAt(SECRET, PRESENT), FACTOR, database)));
  await eventually(async () => {
    await test.query('SELECT pg_stat_clear_snapshot()');
    const sql = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    expect(await test.query(sql)).toHaveLength(2);
  });
  await test.query('COMMIT');
  expect((await taken).sort()).toEqual([false, true]);
});
