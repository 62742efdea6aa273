import { newId, RequestError, type Charge, type BalanceUpdate, type ReplyOf } from '@tollgate/contracts';
import { PostgresMessages, type Messages } from '@tollgate/messaging';
import { tenantRow, type TestDatabase } from '@tollgate/testing';
import { ChargeGatherer } from '../gather/charge-gatherer';
import { Poster } from '../post/poster';
import { openBillingDatabase, type BillingDataSource } from '../database';
import { auditLedger } from '../reconcile/audit';
import { TopUps } from '../topups/top-ups';

export const CENT = 10_000_000n;
/** One time for all charges of a test file, so that no month ends between two of them. */
const ENDED_AT = new Date().toISOString();

/** Billing below the transport, on the calling file's real database. */
export interface TestBilling {
  dataSource: BillingDataSource;
  gatherer: ChargeGatherer;
  poster: Poster;
  topUps: TopUps;
  messages: Messages;
  /** Tenants that the test's auth does not know. */
  unknownTenants: Set<string>;
  /** Tenants that the test's auth has closed. */
  closedTenants: Set<string>;
  /** Metering's answer to `metering.spent`. */
  spent: () => Promise<ReplyOf<'metering.spent'>>;
  /** Creates a tenant with this credit. */
  tenant(cents?: number): Promise<string>;
  /** Balance updates written for a tenant so far, oldest first, from the outbox (no relay runs). */
  updates(tenantId: string): Promise<BalanceUpdate[]>;
  entries(tenantId: string): Promise<{ id: string; type: string; amount: number; period: string; ref: string }[]>;
  books(tenantId: string): Promise<{ version: number; balance: number; unposted: bigint; due: boolean }>;
}

/**
 * Real PostgreSQL and real messages; only auth's answer is the test's own. Call it inside a describe, so that it closes
 * before the database is dropped.
 */
export function useBilling(
  database: TestDatabase,
  { postingIntervalMs = 0, now = () => new Date() } = {},
): TestBilling {
  const billing = {} as TestBilling;
  const messages = new PostgresMessages({ url: database.url, applicationName: 'test-billing' });
  beforeAll(async () => {
    const dataSource = await openBillingDatabase(database.url);
    const unknownTenants = new Set<string>();
    const closedTenants = new Set<string>();
    messages.handle('auth.keys.get', async ({ tenantId, id }) => {
      if (unknownTenants.has(tenantId)) throw new RequestError('not_found', 'No such key.');
      const createdAt = new Date(0).toISOString();
      const times = { lastUsedAt: null, expiresAt: null, rotatedAt: null, formerUntil: null };
      const fields = { profile: 'default', owner: null, tags: [], models: null, ...times };
      return { id, name: 'Test', last4: 'test', status: 'active', createdAt, ...fields };
    });
    messages.handle('auth.tenants.get', async ({ tenantId }) => {
      if (unknownTenants.has(tenantId)) throw new RequestError('not_found', 'No such tenant.');
      return { ...tenantRow(tenantId), ...(closedTenants.has(tenantId) && { status: 'closed' as const }) };
    });
    messages.handle('metering.spent', () => billing.spent());
    await messages.start();
    const topUps = new TopUps(dataSource, messages, { postingIntervalMs, now });
    Object.assign(billing, {
      dataSource,
      gatherer: new ChargeGatherer(dataSource, { postingIntervalMs }),
      poster: new Poster(dataSource, { postingIntervalMs }),
      topUps,
      messages,
      unknownTenants,
      closedTenants,
      spent: async () => ({ tenantNanos: '0', keys: [], nextCursor: null }),
      tenant: async (cents = 100_000) => {
        const tenantId = newId('ten');
        if (cents > 0) await topUps.add({ tenantId, amountCents: cents, source: 'manual', ref: 'first' });
        return tenantId;
      },
      updates: async (tenantId: string) =>
        (
          await database.query<{ data: BalanceUpdate }>(
            `SELECT data FROM billing.outbox WHERE topic = 'credit-news' AND data->>'tenantId' = $1 ORDER BY id`,
            [tenantId],
          )
        ).map((row) => row.data),
      entries: async (tenantId: string) =>
        database.query(
          `SELECT id, type, amount_cents::int AS amount, period, ref
           FROM billing.journal_entry
           WHERE tenant_id = $1
           ORDER BY sequence`,
          [tenantId],
        ),
      books: async (tenantId: string) => {
        const [row] = await database.query<{ version: number; balance: number; unposted: string; due: boolean }>(
          `SELECT version::int, balance_cents::int AS balance, carried_nanos + gathered_nanos AS unposted,
             due_at IS NOT NULL AS due
           FROM billing.tenant_books WHERE tenant_id = $1`,
          [tenantId],
        );
        return { ...row!, unposted: BigInt(row!.unposted) };
      },
    } satisfies TestBilling);
  });
  afterAll(async () => {
    await messages.close();
    await billing.dataSource.destroy();
  });
  return billing;
}

export function charge(tenantId: string, costNanos: bigint, overrides: Partial<Charge> = {}): Charge {
  return {
    id: newId('req'),
    tenantId,
    keyId: 'key_test',
    costNanos: String(costNanos),
    endedAt: ENDED_AT,
    ...overrides,
  };
}

export function sumNanos(charges: readonly Charge[]): bigint {
  return charges.reduce((sum, { costNanos }) => sum + BigInt(costNanos), 0n);
}

/** Checks with the ledger's own proof that these tenants are sound and their charges are exactly these, each once. */
export async function expectBooksToProve(billing: TestBilling, charges: readonly Charge[]): Promise<void> {
  const tenantIds = [...new Set(charges.map((one) => one.tenantId))];
  const { totals, differences } = await auditLedger(billing.dataSource, tenantIds);
  expect(differences).toEqual([]);
  const rows = await billing.dataSource.query<{ id: string }[]>('SELECT id FROM charge WHERE tenant_id = ANY($1)', [
    tenantIds,
  ]);
  expect(rows.map((row) => row.id).sort()).toEqual([...new Set(charges.map((one) => one.id))].sort());
  expect(totals.debitsNanos + totals.carriedNanos).toBe(totals.chargesNanos);
}
