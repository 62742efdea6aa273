import type { Deployment } from './deployment';
import { complete, costOf, createTenant, ledgerOf, type Completion, type TestTenant } from './fixtures';
import { reconciled } from './reconcile';

const CREDIT_CENTS = 100_000;
/** How many of the 20 streams would run for more than a minute. */
const ENDLESS = 10;

/**
 * Sends 20 long streams and 200 plain requests, 40 at once, and kills everything in the middle. Returns the answers
 * that the client saw complete, the refusals, and the number of broken requests.
 */
async function loadUntilKilled(
  tollgate: Deployment,
  tenant: TestTenant,
  killAfter: number,
  servers: 'servers live on' | 'servers end',
): Promise<{ seen: Completion[]; refused: Completion[]; broken: number }> {
  const seen: Completion[] = [];
  // Refused with a status other than 200.
  const refused: Completion[] = [];
  let broken = 0;
  let toStart = 200;
  let killed: Promise<void> | undefined;
  const note = (answer: Promise<Completion>) =>
    answer.then(
      (completion) => {
        const { status, code } = completion;
        // 502 of a load balancer whose gateway was killed, or a stream that ended with an error event.
        if (status === 502 || (status === 200 && code !== null)) broken++;
        else (completion.status === 200 ? seen : refused).push(completion);
        if (seen.length === killAfter) killed = tollgate.kill(servers);
      },
      () => void broken++,
    );
  const streams = Array.from({ length: 20 }, async (_, i) => {
    const stream = {
      messages: [{ role: 'user', content: `stream ${i}` }],
      stream: true,
      // Half of them would run for more than a minute. The others end around the kill.
      simulator:
        i % 2 ? { tokensPerSecond: 50, answerTokens: 4_000 } : { tokensPerSecond: 200, answerTokens: 40 + i * 20 },
    };
    // A stream that a busy store refused begins again, so that the endless ones run when all is killed.
    for (let again = true; again; again = again && !killed) {
      const asked = complete(tollgate.ready, tenant.key, stream);
      await note(asked);
      again = await asked.then(
        ({ status }) => status === 503,
        () => false,
      );
    }
  });
  const workers = Array.from({ length: 40 }, async (_, worker) => {
    while (toStart > 0 && !killed) {
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
  await killed;
  expect(refused.every((completion) => completion.status === 503)).toBe(true);
  expect(broken).toBeGreaterThanOrEqual(ENDLESS);
  return { seen, refused, broken };
}

export function crashSuite(tollgate: Deployment): void {
  describe('after kill -9 in the middle of 20 streams and 200 requests', () => {
    it.each([
      ['servers live on', 80],
      ['servers end', 120],
    ] as const)(
      '(%s), every answer that a client saw complete is in the ledger exactly once',
      async (servers, killAfter) => {
        const tenant = await createTenant(tollgate.ready, CREDIT_CENTS);
        const { seen, refused, broken } = await loadUntilKilled(tollgate, tenant, killAfter, servers);
        expect(seen.length).toBeGreaterThanOrEqual(killAfter);

        expect(await tollgate.start()).not.toHaveProperty('demo');
        await reconciled(tollgate.ready);
        const books = await ledgerOf(tollgate.database, tenant.id);
        for (const completion of seen)
          expect([completion.requestId, books.charges.get(completion.requestId)]).toEqual([
            completion.requestId,
            costOf(completion),
          ]);
        // There may be a charge for each broken request: a stream is charged its recorded progress, and an answer may
        // be settled but not completely received. If the store ends too, it may have accepted a settlement that it
        // could not confirm, and the client got 503.
        const unsure = servers === 'servers end' ? refused.length : 0;
        expect(books.charges.size - seen.length).toBeLessThanOrEqual(broken + unsure);
        // Each charge is in the ledger once: debits plus the carried remainder are the charges, and the balance is the
        // credit minus the debits.
        const charged = [...books.charges.values()].reduce((sum, nanos) => sum + nanos, 0);
        expect(books.debitCents * 1e7 + books.carriedNanos).toBe(charged);
        expect(books.balanceCents).toBe(CREDIT_CENTS - books.debitCents);
        expect(books.coveredTwice).toBe(0);
      },
    );
  });
}
