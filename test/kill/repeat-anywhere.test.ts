import { eventually, onceServed, withDatabase } from '@tollgate/testing';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Ready } from '../e2e/deployment';
import { connected, createTenant, ledgerOf, writeConfig, type TestTenant } from '../e2e/fixtures';
import { reconciled } from '../e2e/reconcile';
import { StandaloneProcess, useDataDirectory } from '../e2e/standalone-process';

const CREDIT_CENTS = 10_000;
const ARMED_WITHIN_MS = 20_000;
const REACHED_WITHIN_MS = 60_000;
/** Longer than the lease of 10 s and a sweep, on a busy machine. */
const ANSWERED_WITHIN_MS = 60_000;
const RETRY_MS = 200;
const adminUrl = process.env['TOLLGATE_TEST_DATABASE_URL']!;

const HELLO = { model: 'sim', messages: [{ role: 'user', content: 'hello' }], max_tokens: 30 };
const STREAM = { ...HELLO, stream: true };
/** Runs for some seconds, so that its progress is recorded. */
const LONG_STREAM = {
  ...STREAM,
  max_tokens: 2_500,
  simulator: { tokensPerSecond: 1_000, answerTokens: 2_500 },
};

interface Step {
  at: string;
  body: Record<string, unknown>;
  /** Whether the first request was settled when the process died. Its repeat then gets its answer. */
  replayed: boolean;
  /** What was delivered may be charged, and the answer lost with the process. Repeats are then refused. */
  mayBeLost?: true;
}

const STEPS: Step[] = [
  { at: 'admitted', body: HELLO, replayed: false },
  { at: 'served', body: HELLO, replayed: false },
  { at: 'settled', body: HELLO, replayed: true },
  { at: 'settled', body: STREAM, replayed: true },
  { at: 'answered', body: STREAM, replayed: true },
  // The first record may be of a stream that has delivered nothing yet. Then its repeat runs.
  { at: 'progress-recorded', body: LONG_STREAM, replayed: false, mayBeLost: true },
];

interface Asked {
  step: Step;
  tenant: TestTenant;
  key: string;
}

function ask({ inferenceUrl }: Ready, { step, tenant, key }: Asked): Promise<Response> {
  return fetch(`${inferenceUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify(step.body),
  });
}

describe('a request with an Idempotency-Key whose gateway is killed', () => {
  const directory = useDataDirectory();
  const name = `repeat_${process.pid}`;
  const url = withDatabase(adminUrl, name);
  const env = (at?: string): Record<string, string> => ({
    DATABASE_URL: url,
    TOLLGATE_CONFIG: writeConfig(directory.path),
    TOLLGATE_DATA_DIR: join(directory.path, 'data'),
    TOLLGATE_DEMO: 'false',
    ...(at && { NODE_OPTIONS: `--import ${pathToFileURL(join(__dirname, 'kill-at.mjs')).href}`, KILL_AT: at }),
  });
  beforeAll(() => connected({ connectionString: adminUrl }, (client) => client.query(`CREATE DATABASE ${name}`)));
  afterAll(() =>
    connected({ connectionString: adminUrl }, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)),
  );

  it('is charged once when it is repeated until it is answered, at whatever step the process dies', async () => {
    const asked: Asked[] = [];
    for (const [n, step] of STEPS.entries()) {
      const process = await StandaloneProcess.start(env(step.at));
      const tenant = await createTenant(process.ready, CREDIT_CENTS);
      const one = { step, tenant, key: `repeat-${n}` };
      asked.push(one);
      // The request of the killed process before is repeated here, while this one is not yet armed.
      const before = asked.at(-2);
      if (before) await expectAnswer(process.ready, before);
      process.child.kill('SIGUSR2');
      await eventually(() => expect(process.stderr).toContain(`armed: ${step.at}`), { timeoutMs: ARMED_WITHIN_MS });
      const broken = onceServed(() => ask(process.ready, one)).then(
        (response) => response.text(),
        () => null,
      );
      await eventually(() => expect([step.at, process.child.signalCode]).toEqual([step.at, 'SIGKILL']), {
        timeoutMs: REACHED_WITHIN_MS,
      });
      await broken.catch(() => null);
    }
    const last = await StandaloneProcess.start(env());
    await expectAnswer(last.ready, asked.at(-1)!);
    await reconciled(last.ready, 60_000);
    await last.end();
    for (const { step, tenant } of asked) {
      const books = await ledgerOf((work) => connected({ connectionString: url }, work), tenant.id);
      expect([step.at, books.charges.size]).toEqual([step.at, 1]);
    }
  }, 600_000);
});

/**
 * Repeats until the answer is whole or surely lost, as a client does, and once more. Both must be the same answer.
 * While the hold of the dead process is pending, repeats are told to wait.
 */
async function expectAnswer(ready: Ready, asked: Asked): Promise<void> {
  const { at, replayed, mayBeLost } = asked.step;
  let first = '';
  let isLost = false;
  await eventually(
    async () => {
      const response = await ask(ready, asked);
      const text = await response.text();
      first = text;
      isLost = mayBeLost === true && response.status === 422;
      if (isLost) return expect(JSON.parse(text)).toMatchObject({ error: { code: 'idempotency_answer_not_stored' } });
      if (response.status !== 200)
        expect(JSON.parse(text)).toMatchObject({ error: { code: 'idempotency_in_progress' } });
      expect([at, response.status]).toEqual([at, 200]);
      expect([at, response.headers.get('idempotent-replayed')]).toEqual([at, String(replayed)]);
      expect(text).toMatch(/"completion_tokens":\d+/);
    },
    { timeoutMs: ANSWERED_WITHIN_MS, everyMs: RETRY_MS },
  );
  const again = await onceServed(() => ask(ready, asked));
  if (isLost) return expect([at, again.status]).toEqual([at, 422]);
  expect([at, again.headers.get('idempotent-replayed')]).toEqual([at, 'true']);
  expect(await again.text()).toBe(first);
}
