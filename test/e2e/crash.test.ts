import {
  charges,
  complete,
  costOf,
  createTenant,
  reconciled,
  writeConfig,
  type Completion,
  type TestTenant,
} from './fixtures';
import { postgresPid, StandaloneProcess, stopPostgres, useDataDirectory, type Ready } from './standalone-process';

jest.setTimeout(120_000);
const directory = useDataDirectory();
const CREDIT_CENTS = 100_000;

/** 20 long streams and 200 plain requests, 40 at once; the process is killed in the middle. What the client saw complete. */
async function loadUntilKilled(
  tollgate: StandaloneProcess & { ready: Ready },
  tenant: TestTenant,
  killAfter: number,
): Promise<Completion[]> {
  const seen: Completion[] = [];
  let broken = 0;
  let toStart = 200;
  const note = (answer: Promise<Completion>) =>
    answer.then(
      (completion) => {
        seen.push(completion);
        if (seen.length === killAfter) tollgate.child.kill('SIGKILL');
      },
      () => void broken++,
    );
  const streams = Array.from({ length: 20 }, (_, i) =>
    note(
      complete(tollgate.ready, tenant.key, {
        messages: [{ role: 'user', content: `stream ${i}` }],
        stream: true,
        // Half of them would go on for minutes; the others end around the kill.
        simulator: { tokensPerSecond: 200, answerTokens: i % 2 ? 4_000 : 40 + i * 20 },
      }),
    ),
  );
  const workers = Array.from({ length: 40 }, async (_, worker) => {
    while (toStart > 0 && tollgate.child.signalCode === null) {
      const i = toStart--;
      await note(
        complete(tollgate.ready, tenant.key, {
          messages: [{ role: 'user', content: `request ${worker} ${i}` }],
          max_tokens: 30,
          simulator: { firstTokenDelayMs: 20 + ((i * 37) % 200) },
        }),
      );
    }
  });
  await Promise.all([...streams, ...workers]);
  await tollgate.exited();
  expect(seen.every((completion) => completion.status === 200)).toBe(true);
  expect(broken).toBeGreaterThan(10);
  return seen;
}

describe('after kill -9 in the middle of 20 streams and 200 requests', () => {
  it.each([
    ['with its PostgreSQL living on', false, 80],
    ['with its PostgreSQL stopped as well', true, 120],
  ])(
    '%s, every answer that a client saw complete is in the ledger exactly once',
    async (_name, stopServer, killAfter) => {
      const env = { TOLLGATE_DATA_DIR: directory.path, TOLLGATE_CONFIG: writeConfig(directory.path) };
      const first = await StandaloneProcess.start(env);
      const tenant = await createTenant(first.ready, CREDIT_CENTS);
      const seen = await loadUntilKilled(first, tenant, killAfter);
      expect(seen.length).toBeGreaterThanOrEqual(killAfter);
      expect(postgresPid(directory.path)).not.toBeNull();
      if (stopServer) await stopPostgres(directory.path);

      const second = await StandaloneProcess.start(env);
      try {
        expect(second.ready.demo).toBeUndefined();
        await reconciled(second.ready);
        const charged = await charges(directory.path, tenant.id);
        for (const completion of seen)
          expect([completion.requestId, charged.get(completion.requestId)]).toEqual([
            completion.requestId,
            costOf(completion),
          ]);
        // What was charged besides are streams that were cut (their recorded progress) and answers that were settled but never seen whole.
        expect(charged.size).toBeLessThanOrEqual(220);
      } finally {
        expect(await second.end()).toBe(0);
      }
    },
  );
});
