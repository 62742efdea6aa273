import { readFileSync, writeFileSync } from 'node:fs';
import { eventually, onceServed, useTestDatabase } from '@tollgate/testing';
import { operator } from './deployment';
import { complete, createTenant, writeConfig } from './fixtures';
import { StandaloneProcess, useDataDirectory } from './standalone-process';

const directory = useDataDirectory();
const database = useTestDatabase();
const LINE = new RegExp(
  'plans: profile slow of plan default is missing, but active keys use it \\(1 in total, e\\.g\\. of ten_\\w+\\)\\. ' +
    'Restore ',
);

it('a profile with active keys cannot be removed, at run time or at a start, until they are revoked', async () => {
  const file = writeConfig(directory.path);
  const whole = readFileSync(file, 'utf8');
  const less = whole.replace(/ *- \{ id: slow.*\n/, '');
  expect(less).not.toBe(whole);
  const env = {
    ...{ DATABASE_URL: database.url, TOLLGATE_DATA_DIR: directory.path },
    ...{ TOLLGATE_CONFIG: file, TOLLGATE_DEMO: 'false' },
  };
  const first = await StandaloneProcess.start(env);
  const tenant = await createTenant(first.ready, 1_000, 'slow');
  const answered = async (by: typeof first) =>
    (await onceServed(() => complete(by.ready, tenant.key, { messages: [{ role: 'user', content: 'x' }] }))).status;

  writeFileSync(file, less);
  await eventually(() => expect(first.stderr).toMatch(LINE));
  expect(first.stderr).toContain('the old configuration stays in force');
  expect(await answered(first)).toBe(200);
  expect(await first.end()).toBe(0);

  const refused = StandaloneProcess.spawn(env);
  expect([await refused.exited(), refused.stdout]).toEqual([1, '']);
  const [line, ...more] = refused.stderr
    .trim()
    .split('\n')
    .filter((one) => one.startsWith('tollgate: '));
  expect([line, more]).toEqual([expect.stringMatching(LINE), []]);

  writeFileSync(file, whole);
  const again = await StandaloneProcess.start(env);
  expect(await answered(again)).toBe(200);
  const path = `/_operator/v1/tenants/${tenant.id}/keys/${tenant.keyId}`;
  const revoked = await onceServed(() => operator(again.ready).delete(path));
  expect(revoked.status).toBe(204);
  writeFileSync(file, less);
  await eventually(() => expect(again.stderr).toContain('configuration read again'));
  expect(await again.end()).toBe(0);
});
