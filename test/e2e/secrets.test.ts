import { complete, createTenant, reconciled, withDatabase, writeConfig } from './fixtures';
import { call, operator, StandaloneProcess, useDataDirectory, type Ready } from './standalone-process';

jest.setTimeout(60_000);
const directory = useDataDirectory();
let tollgate: StandaloneProcess & { ready: Ready };

beforeAll(async () => {
  tollgate = await StandaloneProcess.start({
    TOLLGATE_DATA_DIR: directory.path,
    TOLLGATE_CONFIG: writeConfig(directory.path),
    TOLLGATE_LOG_LEVEL: 'trace',
  });
});

/** Messages are gone once they are handled: a copy of each is kept from here on, in a table that is searched with the others. */
async function keepMessages(): Promise<void> {
  await withDatabase(directory.path, async (client) => {
    await client.query(`CREATE TABLE public.seen_message (text text)`);
    await client.query(`CREATE FUNCTION public.keep() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
      $$ BEGIN INSERT INTO public.seen_message VALUES (NEW::text); RETURN NEW; END $$`);
    for (const table of ['pgboss.job', 'metering.outbox', 'billing.outbox', 'admission.hold'])
      await client.query(`CREATE TRIGGER keep AFTER INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION public.keep()`);
  });
}

describe('secrets and prompts', () => {
  it('are in no log line, no table and no message, whatever was done with them', async () => {
    const { ready } = tollgate;
    await keepMessages();
    const tenant = await createTenant(ready, 1_000);
    const token = ready.demo!.token;
    const prompt = 'an-unmistakable-prompt-4711';
    const answers = [
      await complete(ready, tenant.key, { messages: [{ role: 'user', content: prompt }] }),
      await complete(ready, tenant.key, { messages: [{ role: 'user', content: prompt }], stream: true }),
      await complete(ready, tenant.key, { messages: [{ role: 'user', content: prompt }], temperature: 9 }),
      await complete(ready, `${tenant.key}x`, { messages: [{ role: 'user', content: prompt }] }),
    ];
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 400, 401]);
    const issued = await call<{ data: { id: string; key: string } }>(`${ready.managementUrl}/keys`, token, {
      method: 'POST',
      body: JSON.stringify({ name: 'another' }),
    });
    const minted = await operator(ready).post<{ data: { token: string } }>(
      `/_operator/v1/tenants/${tenant.id}/tokens`,
      { name: 't', scopes: ['keys:read'] },
    );
    await call(`${ready.managementUrl}/usage`, token);
    await call(`${ready.managementUrl}/keys/${issued.body.data.id}`, token, { method: 'DELETE' });
    await call(`${ready.managementUrl}/keys`, tenant.key);
    await reconciled(ready);

    const secrets = [
      tenant.key,
      `${tenant.key}x`,
      ready.demo!.key,
      token,
      issued.body.data.key,
      minted.body.data.token,
      ready.operatorSecret,
      prompt,
    ];
    expect(secrets.every((secret) => secret.length > 15)).toBe(true);
    const rows = await withDatabase(directory.path, async (client) => {
      const { rows: tables } = await client.query<{ name: string }>(
        `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
      );
      expect(tables.length).toBeGreaterThan(15);
      const texts: string[] = [];
      for (const { name } of tables) {
        const { rows: found } = await client.query<{ text: string }>(`SELECT t::text AS text FROM ${name} t`);
        texts.push(...found.map((row) => `${name}: ${row.text}`));
      }
      return texts;
    });
    expect(rows.length).toBeGreaterThan(20);
    for (const answer of answers.slice(0, 2)) {
      // The messages about these requests were seen: on their way to metering, to billing and back.
      const about = rows.filter((row) => row.startsWith('public.seen_message') && row.includes(answer.requestId));
      expect(about.length).toBeGreaterThanOrEqual(4);
    }
    for (const secret of secrets) {
      expect(tollgate.stderr.includes(secret)).toBe(false);
      expect(rows.filter((row) => row.includes(secret))).toEqual([]);
    }
    // The log did see these requests.
    expect(tollgate.stderr).toContain(answers[0]!.requestId);
  });
});
