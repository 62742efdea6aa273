import { eventually, type TestDatabase } from '@tollgate/testing';
import { Client } from 'pg';
import type { Configuration } from '../../../apps/console/src/api/answers';
import { chargeFor } from './invoice.fixture';

const ARRIVES_WITHIN_MS = 60_000;
const NANOS_PER_CENT = 10_000_000n;
/** 12.60015 cents: a part of a cent is carried over the end of the month. */
const COMPLETION_TOKENS = 210_000;

/** A month as its invoice must show it. */
export interface EndedMonth {
  period: string;
  usedNanos: bigint;
  amountCents: bigint;
}

/**
 * Charges a tenant for a request in the last millisecond of a month and for one in the first of the next, and closes
 * both months. They are over for longer than the 30 days that pages show. The tenant has credit for it, and no charges
 * yet.
 * @param close closes a month and those before it, as an operator does
 */
export async function endMonth(
  database: TestDatabase,
  tenantId: string,
  configuration: Configuration,
  close: (period: string) => Promise<void>,
): Promise<readonly [EndedMonth, EndedMonth]> {
  const now = new Date();
  const endMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 2, 1);
  const ends = [endMs - 1, endMs].map((at) => new Date(at).toISOString());
  // Billing looks each minute for months that are over. It closes none while somebody else does, so none is closed
  // before its charges are there.
  const closer = new Client({ connectionString: database.url });
  await closer.connect();
  const used: bigint[] = [];
  try {
    await closer.query('BEGIN');
    await closer.query('SELECT FROM billing.invoice_counter FOR UPDATE');
    for (const endedAt of ends) {
      const period = endedAt.slice(0, 7);
      // A month that has begun for the tenant stays open until it is closed, however late charges are.
      await database.query('INSERT INTO billing.tenant_month (tenant_id, period) VALUES ($1, $2)', [tenantId, period]);
      used.push(
        (await chargeFor(database, tenantId, configuration, { endedAt, completionTokens: COMPLETION_TOKENS })).cost,
      );
      await eventually(
        async () => {
          const sql = 'SELECT 1 FROM billing.charge WHERE tenant_id = $1 AND period = $2';
          expect(await database.query(sql, [tenantId, period])).toHaveLength(1);
        },
        { timeoutMs: ARRIVES_WITHIN_MS },
      );
    }
  } finally {
    await closer.end();
  }
  const [period, next] = ends.map((at) => at.slice(0, 7)) as [string, string];
  await close(next);
  const [first, second] = used as [bigint, bigint];
  const paid = first / NANOS_PER_CENT;
  return [
    { period, usedNanos: first, amountCents: paid },
    { period: next, usedNanos: second, amountCents: (first + second) / NANOS_PER_CENT - paid },
  ];
}
