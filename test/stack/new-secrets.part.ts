import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { docker, type Ready, type Stack } from './stack-process';

const START_TIMEOUT_MS = 420_000;
/** More than there are gateways, so that each is asked. */
const QUESTIONS = 8;
/** The pause after a gateway is ready again (tools/stack/restart.mjs). */
const NOTICE_MS = 2_000;

interface Running {
  ready: Ready;
  ask(): Promise<unknown>;
}

export function newSecretsTests(stack: Stack, running: () => Running): void {
  /** When each container of these services started. */
  const starts = async (...services: string[]) => {
    const ids = await Promise.all(services.map((service) => stack.containers(service)));
    const containers = JSON.parse(await docker('inspect', ...ids.flat())) as { State: { StartedAt: string } }[];
    return containers.map(({ State: state }) => Date.parse(state.StartedAt));
  };
  const file = (name: string) => join(stack.dataDirectory, 'secrets', name);

  it(
    'a start with a new operator secret restarts the gateways alone, one after the other',
    async () => {
      const { ready } = running();
      const others = ['auth', 'metering', 'billing', 'console', 'postgres'];
      const before = { gateways: await starts('gateway'), others: await starts(...others) };
      const next = randomBytes(32).toString('hex');
      const both = { TOLLGATE_OPERATOR_SECRET: next, TOLLGATE_FORMER_OPERATOR_SECRET: ready.operatorSecret };
      // The services read the first file again by themselves, and PostgreSQL needs the second one only for its data.
      for (const name of ['auth-message-keys', 'postgres-password']) utimesSync(file(name), new Date(), new Date());
      const ended = await stack.up(['--json', '--no-build'], both);
      expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining(next) });
      for (const secret of Object.values(both)) {
        const headers = { authorization: `Bearer ${secret}` };
        const answers = Array.from({ length: QUESTIONS }, () =>
          fetch(`${ready.operatorUrl}/_operator/v1/tenants`, { headers }),
        );
        expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(QUESTIONS).fill(200));
      }
      const [first, second] = (await starts('gateway')).sort((a, b) => a - b);
      expect(first).toBeGreaterThan(Math.max(...before.gateways));
      expect(second! - first!).toBeGreaterThan(NOTICE_MS);
      expect(await starts(...others)).toEqual(before.others);
    },
    START_TIMEOUT_MS,
  );

  it(
    'a start with new passwords of Redis, PostgreSQL and Kafka ends with all services ready',
    async () => {
      const changedAt = Date.now();
      for (const name of ['gateway-redis', 'console-database', 'kafka-console']) rmSync(file(`${name}-password`));
      // Without the variables, the operator secret is again the one that is kept.
      expect(await stack.up(['--json', '--no-build'])).toMatchObject({
        code: 0,
        stdout: expect.stringContaining(running().ready.operatorSecret),
      });
      expect(Math.min(...(await starts('gateway', 'console')))).toBeGreaterThan(changedAt);
      await running().ask();
    },
    START_TIMEOUT_MS,
  );

  it(
    'a start after an editor replaced tollgate.yaml restarts the services that had the former file',
    async () => {
      const changedAt = Date.now();
      const config = join(stack.dataDirectory, 'tollgate.yaml');
      const changed = `${readFileSync(config, 'utf8')}# Replaced.\n`;
      writeFileSync(`${config}.new`, changed);
      renameSync(`${config}.new`, config);
      expect(await stack.up(['--json', '--no-build'])).toMatchObject({ code: 0 });
      for (const service of ['auth', 'metering', 'billing', 'console', 'gateway']) {
        for (const id of await stack.containers(service))
          expect(await docker('exec', id, 'cat', '/etc/tollgate/tollgate.yaml')).toBe(changed.trim());
      }
      const [first, second] = (await starts('gateway')).sort((a, b) => a - b);
      expect(first).toBeGreaterThan(changedAt);
      expect(second! - first!).toBeGreaterThan(NOTICE_MS);
      await running().ask();
    },
    START_TIMEOUT_MS,
  );
}
