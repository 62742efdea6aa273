import {
  complete,
  costOf,
  createTenant,
  ledgerOf,
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
): Promise<{ seen: Completion[]; refused: Completion[]; broken: number }> {
  const seen: Completion[] = [];
  // On a machine that is far too busy a request may get a 503 before it began: no answer, and no charge.
  const refused: Completion[] = [];
  let broken = 0;
  let toStart = 200;
  const note = (answer: Promise<Completion>) =>
    answer.then(
      (completion) => {
        (completion.status === 200 ? seen : refused).push(completion);
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
  expect(refused.every((completion) => completion.status === 503)).toBe(true);
  expect(broken).toBeGreaterThan(10);
  return { seen, refused, broken };
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
      const { seen, broken } = await loadUntilKilled(first, tenant, killAfter);
      expect(seen.length).toBeGreaterThanOrEqual(killAfter);
      expect(postgresPid(directory.path)).not.toBeNull();
      if (stopServer) await stopPostgres(directory.path);

      const second = await StandaloneProcess.start(env);
      try {
        expect(second.ready.demo).toBeUndefined();
        await reconciled(second.ready);
        const books = await ledgerOf(directory.path, tenant.id);
        for (const completion of seen)
          expect([completion.requestId, books.charges.get(completion.requestId)]).toEqual([
            completion.requestId,
            costOf(completion),
          ]);
        // Besides, at most each request that broke: a stream at its recorded progress, or an answer that was settled and never seen whole.
        expect(books.charges.size - seen.length).toBeLessThanOrEqual(broken);
        // Each of them is in the ledger once: debits and the carried rest add up to the charges, and the balance is what is left.
        const charged = [...books.charges.values()].reduce((sum, nanos) => sum + nanos, 0);
        expect(books.debitCents * 1e7 + books.carriedNanos).toBe(charged);
        expect(books.balanceCents).toBe(CREDIT_CENTS - books.debitCents);
        expect(books.coveredTwice).toBe(0);
      } finally {
        expect(await second.end()).toBe(0);
      }
    },
  );
});
