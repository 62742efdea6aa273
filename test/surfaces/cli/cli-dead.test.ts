import { PostgresMessages } from '@tollgate/messaging';
import { startEmbeddedPostgres } from '@tollgate/postgres';
import { useTestDatabase } from '@tollgate/testing';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runTollgate } from '../tollgate-process';

// Real: PostgreSQL and the process. Nothing consumes.
const database = useTestDatabase();
const id = (n: number) => `00000000-0000-8000-a000-00000000000${n}`;
const at = (n: number) => `2026-11-29T10:00:0${n}.000Z`;
const message = (n: number) => ({ id: `msg_${n}`, v: 9, at: at(n), data: { tenantId: `ten_${n}` } });

const tollgate = (...args: string[]) => runTollgate(['dead', ...args], { DATABASE_URL: database.url });
async function json(...args: string[]) {
  const { code, stdout, stderr } = await tollgate(...args, '--json');
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout);
}

describe('tollgate dead, of a standalone form', () => {
  it('says that another database has no messages', async () => {
    const { code, stdout, stderr } = await tollgate('list');
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^tollgate: The database has no messages of a standalone Tollgate.*KAFKA_BROKERS.*\n$/);
  });

  it('lists and replays what is quarantined in the database of DATABASE_URL', async () => {
    const messages = new PostgresMessages({ url: database.url, applicationName: 'test' });
    await messages.start();
    await messages.close();
    expect((await tollgate('list')).stdout).toBe('No message was quarantined.\n');
    for (const n of [2, 1, 3])
      await database.query(`INSERT INTO messages.dead VALUES ('charges.billing', $1, $2, 'version 9', $3)`, [
        id(n),
        at(n),
        n === 3 ? '"text"' : message(n),
      ]);
    const listed = await json('list');
    const text = JSON.stringify(message(1));
    expect(listed[0]).toEqual({
      ...{ topic: 'charges', origin: `billing/${id(1)}`, group: 'billing', partition: null, offset: null, index: null },
      ...{ at: at(1), reason: 'version 9', key: 'ten_1', value: text },
      valueBase64: Buffer.from(text).toString('base64'),
    });
    expect(listed.map(({ key }: { key: string | null }) => key)).toEqual(['ten_1', 'ten_2', null]);
    expect(await json('list', 'usage-events')).toEqual([]);
    expect((await tollgate('list', 'charges')).stdout).toContain(`billing/${id(1)}  ${at(1)}  ten_1  version 9`);

    const wrong = await tollgate('replay', 'charges', `billing/${id(1)}`, 'billing/3/7');
    expect([wrong.code, wrong.stdout]).toEqual([1, '']);
    expect(wrong.stderr).toContain('No such message of charges is quarantined: billing/3/7. Nothing was replayed');
    expect((await tollgate('replay', 'charges')).code).toBe(2);
    expect((await tollgate('replay', 'nothing', '--all')).code).toBe(2);
    expect(await json('list')).toEqual(listed);

    expect(await json('replay', 'charges', `billing/${id(2)}`)).toEqual({ replayed: [`billing/${id(2)}`] });
    expect((await tollgate('replay', 'charges', '--all')).stdout).toMatch(/^2 published to charges again\./);
    expect((await tollgate('replay', 'charges', '--all')).stdout).toBe('There is nothing to replay.\n');
    expect(await json('list')).toEqual([]);
    expect(await database.query('SELECT queue, data FROM messages.batch ORDER BY id')).toEqual(
      [message(2), message(1), 'text'].map((one) => ({ queue: 'charges.billing', data: { messages: [one] } })),
    );
  });

  it('finds the embedded server of a data directory while it runs', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'tollgate-dead-'));
    const list = () => runTollgate(['dead', 'list'], { TOLLGATE_DATA_DIR: directory });
    try {
      const none = await list();
      expect([none.code, none.stdout]).toEqual([1, '']);
      expect(none.stderr).toContain(`No PostgreSQL of a standalone Tollgate runs on ${directory}.`);
      const server = await startEmbeddedPostgres({ dataDirectory: directory });
      try {
        const messages = new PostgresMessages({ url: server.url, applicationName: 'test' });
        await messages.start();
        await messages.close();
        expect(await list()).toEqual({ code: 0, stdout: 'No message was quarantined.\n', stderr: '' });
      } finally {
        await server.stop();
      }
      expect((await list()).code).toBe(1);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
