import { AdmissionClient, type AdmissionStore } from '@tollgate/admission';
import { newId, NANOS_PER_CENT, type UsageEvent } from '@tollgate/contracts';
import type { KafkaMessages, PostgresMessages } from '@tollgate/messaging';
import { eventually, type TestDatabase } from '@tollgate/testing';
import { admitRequest, Books, usageEvent } from '../reconcile/books';
import { LockWatch } from './lock-watch';

const TENANTS = 1_000;
const REQUESTS_EACH = 20;
/** More than the holds of a tenant's twenty requests together, at 1,000 nanos per token. */
const CREDIT_CENTS = 25;
const MOST_TOKENS = 12_000;
const MAX_LOCK_WAIT_MS = 1_000;
const TOP_UPS_AT_ONCE = 40;
const EVENTS_PER_MESSAGE_BATCH = 500;
/** Longer than the waits of `REST` together. */
const TIMEOUT_MS = 600_000;
const REST = { timeoutMs: 90_000, everyMs: 250 };

export interface Replica {
  admission: AdmissionStore;
  messages?: PostgresMessages | KafkaMessages;
}

/** A request with the event that settles it, and the client that admits it. */
interface Asked {
  event: UsageEvent;
  client: AdmissionClient;
}

/**
 * 20,000 requests of 1,000 tenants at once, through the admission of two gateways, two of metering and two of billing,
 * so that they compete for locks as much as possible.
 * @param open makes the admission and the messages of one replica
 */
export function contentionSuite(database: TestDatabase, open: () => Promise<Replica>): void {
  jest.setTimeout(TIMEOUT_MS);
  const load = `${TENANTS} tenants × ${REQUESTS_EACH} requests at once`;
  it(`${load} cause no deadlock and no lock wait above a second, and every nano is right`, async () => {
    const replicas = [await open(), await open()];
    const books = replicas.map(({ admission, messages }) => new Books(database, admission, messages));
    for (const one of books) await one.start();
    const watch = new LockWatch(database);
    const clients = replicas.map(({ admission }) => new AdmissionClient(admission));
    try {
      const tenants = await topUp(books);
      const asked = requestsOf(tenants, clients);
      await watch.start();
      const startedMs = Date.now();
      const results = await Promise.all(asked.map(({ event, client }) => client.admit(admitRequest(event))));
      const heldMs = Date.now() - startedMs;
      expect(new Set(results.map((result) => result.kind))).toEqual(new Set(['held']));
      const settled = await Promise.all(asked.map(({ event, client }) => client.settle({ event })));
      expect(new Set(settled.map((result) => result.kind))).toEqual(new Set(['settled']));
      const settledMs = Date.now() - startedMs;
      const events = asked.map(({ event }) => event);
      await publish(books, events);
      await eventually(() => expectBooked(database, events), REST);
      const bookedMs = Date.now() - startedMs;
      await watch.stop();
      await expectRight(database, replicas[0]!.admission, events);
      expect(await books[1]!.reconcile()).toEqual([]);
      console.log(
        `held in ${heldMs} ms, settled in ${settledMs} ms, booked in ${bookedMs} ms; ` +
          `longest wait for a lock ${watch.longestWaitMs.toFixed()} ms in ${watch.looks} looks`,
      );
    } finally {
      for (const one of books) await one.stop();
      for (const { admission } of replicas) await admission.close();
    }
    expect(watch.looks).toBeGreaterThan(10);
    expect(watch.longestWaitMs).toBeLessThan(MAX_LOCK_WAIT_MS);
    expect(await watch.deadlocks()).toBe(0);
  });
}

/** Tenants with credit, in the books and in the admission store. */
async function topUp(books: readonly Books[]): Promise<string[]> {
  const tenants = Array.from({ length: TENANTS }, () => newId('ten'));
  let next = 0;
  await Promise.all(
    Array.from({ length: TOP_UPS_AT_ONCE }, async (_, worker) => {
      const { messages } = books[worker % books.length]!;
      for (let n = next++; n < TENANTS; n = next++) {
        const entry = { tenantId: tenants[n]!, amountCents: CREDIT_CENTS, source: 'manual', ref: 'first' };
        // A replica that has just started may not answer yet. A repeat is safe, because a ref counts once.
        await eventually(() => messages.request('billing.credit.add', entry), REST);
      }
    }),
  );
  await eventually(async () => {
    const known = await books[0]!.admission.snapshot({ limit: 2 * TENANTS });
    expect(known.map(({ tenantId }) => tenantId)).toEqual(tenants.toSorted());
    expect(new Set(known.map(({ balanceNanos }) => balanceNanos))).toEqual(
      new Set([BigInt(CREDIT_CENTS) * NANOS_PER_CENT]),
    );
  }, REST);
  return tenants;
}

/**
 * The requests in rounds: one request of every tenant per round, and every second round in reverse order. So the two
 * gateways lock the tenants in opposite orders.
 */
function requestsOf(tenants: readonly string[], clients: readonly AdmissionClient[]): Asked[] {
  const keys = tenants.map(() => newId('key'));
  return Array.from({ length: REQUESTS_EACH }, (_, round) => {
    const order = tenants.map((_, n) => (round % 2 === 0 ? n : TENANTS - 1 - n));
    return order.map((n) => ({
      event: usageEvent(tenants[n]!, keys[n]!, 1 + ((n * 7_919 + round * 104_729) % MOST_TOKENS)),
      client: clients[(n + round) % clients.length]!,
    }));
  }).flat();
}

async function publish(books: readonly Books[], events: readonly UsageEvent[]): Promise<void> {
  const batches = Array.from({ length: Math.ceil(events.length / EVENTS_PER_MESSAGE_BATCH) }, (_, n) =>
    events.slice(n * EVENTS_PER_MESSAGE_BATCH, (n + 1) * EVENTS_PER_MESSAGE_BATCH),
  );
  await Promise.all(batches.map((batch, n) => books[n % books.length]!.messages.publish('usage-events', batch)));
}

/** Every event has a charge, and no whole cent is left to post. */
async function expectBooked(database: TestDatabase, events: readonly UsageEvent[]): Promise<void> {
  const [row] = await database.query(
    `SELECT (SELECT count(*)::int FROM billing.charge) AS charges,
       (SELECT count(*)::int FROM billing.tenant_books
         WHERE carried_nanos + gathered_nanos >= ${NANOS_PER_CENT}) AS due`,
  );
  expect(row).toEqual({ charges: events.length, due: 0 });
}

/**
 * For each tenant: Σ settled events = Σ charges = Σ debits + carried remainder, and balance = Σ entries = top-up −
 * debits. The admission store has the same balance and no hold.
 */
async function expectRight(
  database: TestDatabase,
  admission: AdmissionStore,
  events: readonly UsageEvent[],
): Promise<void> {
  const settled = new Map<string, bigint>();
  for (const { tenantId, costNanos } of events)
    settled.set(tenantId, (settled.get(tenantId) ?? 0n) + BigInt(costNanos));
  const rows = await database.query<Record<string, string>>(
    `SELECT b.tenant_id, e.nanos AS events, c.nanos AS charges,
            d.debited * ${NANOS_PER_CENT} + b.carried_nanos + b.gathered_nanos AS debits,
            b.balance_cents AS balance, d.entries,
       ${CREDIT_CENTS} - d.debited AS left
     FROM billing.tenant_books b
       JOIN (SELECT tenant_id, sum(cost_nanos) AS nanos FROM metering.usage_event GROUP BY 1) e USING (tenant_id)
       JOIN (SELECT tenant_id, sum(cost_nanos) AS nanos FROM billing.charge GROUP BY 1) c USING (tenant_id)
       JOIN (SELECT tenant_id, sum(amount_cents) AS entries,
                    coalesce(-sum(amount_cents) FILTER (WHERE type = 'usage'), 0) AS debited
             FROM billing.journal_entry GROUP BY 1) d USING (tenant_id)`,
  );
  expect(rows).toHaveLength(TENANTS);
  // The balance updates of the charges release the holds.
  const snapshots = await eventually(async () => {
    const all = await admission.snapshot({ limit: 2 * TENANTS });
    expect(all.filter(({ pendingHolds, settledHolds }) => pendingHolds + settledHolds > 0)).toEqual([]);
    return new Map(all.map((snapshot) => [snapshot.tenantId, snapshot.balanceNanos]));
  }, REST);
  for (const { tenant_id: tenantId, ...sums } of rows) {
    const nanos = String(settled.get(tenantId!));
    const { balance } = sums;
    expect(sums).toEqual({ events: nanos, charges: nanos, debits: nanos, balance, entries: balance, left: balance });
    expect(snapshots.get(tenantId!)).toBe(BigInt(CREDIT_CENTS) * NANOS_PER_CENT - BigInt(nanos));
  }
}
