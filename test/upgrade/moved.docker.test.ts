import { applyTopics, createMessageKeys } from '@tollgate/messaging';
import { eventually } from '@tollgate/testing';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { textOf } from '../docs/document';
import { operator, type Ready } from '../e2e/deployment';
import { complete, createTenant, writeConfig, type TestTenant } from '../e2e/fixtures';
import { reconciled } from '../e2e/reconcile';
import { StandaloneProcess, useDataDirectory } from '../e2e/standalone-process';
import { OPERATOR_SECRET, useServers } from '../services/deployment';

const CREDIT_CENTS = 1_000;
const SERVICES = ['auth', 'metering', 'billing', 'console'] as const;
const LOGINS = SERVICES.flatMap((name) => [name, `${name}-owner`]);
const PAGE = 'docs/operating/distributed.md';
/** The commands of the document: the copy of the data, and the mark of the database that stays behind. */
const [COPY, MARK] = [
  .../## From the standalone form\n(.*?)\n## /s.exec(textOf(PAGE))![1]!.matchAll(/```sh\n(.*?)```/gs),
].map(([, commands]) => commands!);
const CONFIG = writeConfig(mkdtempSync(join(tmpdir(), 'tollgate-moved-')));

const sql = (name: string) => readFileSync(resolve(__dirname, `../../deploy/postgres/${name}`), 'utf8');
const directory = useDataDirectory();
const deployment = useServers(
  { TOLLGATE_CONFIG: CONFIG },
  {
    files: {
      '/deploy/postgres/roles.sql': sql('roles.sql'),
      ...Object.fromEntries(LOGINS.map((login) => [`/run/secrets/${login}-database-password`, `pw-${login}`])),
    },
  },
);
const { postgres } = deployment;

/** The URL of the login of a service, or of the owner of its schema. */
const urlAs = (login: string) => postgres.url.replace(/\/\/[^@]+@/, `//${login.replace('-', '_')}:pw-${login}@`);
const urlInside = (database: string) => `postgres://postgres@/${database}?port=${postgres.port}`;

const spend = (ready: Ready, { key }: TestTenant) =>
  eventually(async () => {
    const answer = await complete(ready, key, { messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1_000 });
    expect(answer.status).toBe(200);
  });

/** What the books have of a tenant. Redis has no credit of the tenant before its first request. */
async function moneyOf(ready: Ready, { id }: TestTenant): Promise<object> {
  const credit = await operator(ready).get<{ data: object }>(`/_operator/v1/tenants/${id}/credit`);
  const heads = await operator(ready).get<{ data: object }>('/_operator/v1/journal/heads');
  return { credit: { ...credit.body.data, spendableCents: null }, heads: heads.body.data };
}

it('the services continue the books of a standalone form, with its tenants and keys', async () => {
  await postgres.exec(['createdb', '-U', 'postgres', '-p', String(postgres.port), 'alone']);
  const settings = {
    DATABASE_URL: postgres.url.replace(/tollgate$/, 'alone'),
    TOLLGATE_DATA_DIR: directory.path,
    TOLLGATE_CONFIG: CONFIG,
    TOLLGATE_CONSOLE: 'true',
    TOLLGATE_DEMO: 'false',
  };
  const alone = await StandaloneProcess.start(settings);
  const tenant = await createTenant(alone.ready, CREDIT_CENTS);
  await spend(alone.ready, tenant);
  await reconciled(alone.ready);
  const before = await moneyOf(alone.ready, tenant);

  const databases = `STANDALONE='${urlInside('alone')}' DATABASE='${urlInside('tollgate')}'`;
  const run = (commands: string) => postgres.exec(['sh', '-euc', `cd / && export ${databases} && ${commands}`]);
  await run(COPY!);
  expect(await alone.end()).toBe(0);
  await run(MARK!);
  await expect(StandaloneProcess.start(settings)).rejects.toThrow(/The database is that of the distributed form/);

  createMessageKeys(deployment.keysDirectory);
  await applyTopics({ brokers: deployment.kafka.brokers, clientId: 'test' });
  for (const app of SERVICES) {
    const job = deployment.spawn(app, { DATABASE_URL: urlAs(`${app}-owner`) }, ['--migrate']);
    expect([await job.exited(), job.stderr]).toEqual([0, expect.any(String)]);
  }
  await Promise.all(SERVICES.map((app) => deployment.start(app, { DATABASE_URL: urlAs(app) })));
  const { publicUrl, operatorUrl } = (await deployment.start('gateway')).addresses;
  const ready: Ready = {
    inferenceUrl: `${publicUrl}/v1`,
    managementUrl: `${publicUrl}/_api/v1`,
    operatorUrl,
    docsUrl: `${publicUrl}/docs`,
    operatorSecret: OPERATOR_SECRET,
  };
  await reconciled(ready);
  expect(await moneyOf(ready, tenant)).toEqual(before);
  await spend(ready, tenant);
  await reconciled(ready);
});
