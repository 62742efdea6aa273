import { costNanos, newId, type RequestLife, type TokenCounts } from '@tollgate/contracts';
import { PostgresMessages } from '@tollgate/messaging';
import { stampPrice } from '@tollgate/runtime';
import { eventually, type TestDatabase } from '@tollgate/testing';
import type { Page } from 'playwright-core';
import type { Configuration } from '../../../apps/console/src/api/answers';

const ARRIVES_WITHIN_MS = 60_000;

export interface TestInvoice {
  number: number;
  period: string;
  model: string;
  tokens: TokenCounts;
  /** Nanos. */
  cost: bigint;
}

/** The prices in force, as the operator in front of the page sees them. */
export async function configurationOf(page: Page, { base }: { base: string }): Promise<Configuration> {
  const answer = await page.request.get(`${base}/console/api/operator/configuration`);
  return (await answer.json()) as Configuration;
}

/** How a stream ran for which more was held twice. */
const LIFE: RequestLife = {
  ...{ key: [600, 2_000_000, 50], tenant: [1_200, 4_000_000, 100] },
  ...{ heldNanos: '30000000', endNanos: '150000000', extensions: 2, firstMs: 412 },
};
const STREAM_MS = 1_500_000;

/** Charges a tenant for a stream that ended at `endedAt`, by an event like a gateway's. */
export async function chargeFor(
  { url }: Pick<TestDatabase, 'url'>,
  tenantId: string,
  { models }: Configuration,
  { endedAt, completionTokens, keyId = newId('key') }: { endedAt: string; completionTokens: number; keyId?: string },
): Promise<Pick<TestInvoice, 'model' | 'tokens' | 'cost'>> {
  const { id: model, price: given } = models.find(({ id }) => id === 'sim-small')!;
  const price = stampPrice({ ...given, cachedInput: given.cachedInput ?? given.input }, 'chat');
  const tokens = { promptTokens: 10, cachedTokens: 0, completionTokens };
  const cost = costNanos(tokens, price);
  const messages = new PostgresMessages({ url, applicationName: 'console-test' });
  try {
    await messages.start();
    const event = { id: newId('req'), tenantId, keyId, model, kind: 'chat', stream: true, life: LIFE } as const;
    const startedAt = new Date(Date.parse(endedAt) - STREAM_MS).toISOString();
    const times = { startedAt, endedAt, outcome: 'complete', estimated: false } as const;
    const money = { price, costNanos: String(cost), overrunNanos: '0' };
    await messages.publish('usage-events', [{ ...event, ...tokens, ...times, ...money }]);
  } finally {
    await messages.close();
  }
  return { model, tokens, cost };
}

/**
 * Charges a tenant for one request that ended now, and closes the running month as billing closes one that is over. The
 * API closes no running month, and a charge for a past one would be late. The tenant has credit for it, and no other
 * charges.
 */
export async function issueInvoice(
  database: TestDatabase,
  tenantId: string,
  configuration: Configuration,
  keyId?: string,
): Promise<TestInvoice> {
  const used = { endedAt: new Date().toISOString(), completionTokens: 200_000, ...(keyId && { keyId }) };
  const charged = await chargeFor(database, tenantId, configuration, used);
  await eventually(
    async () => {
      const sql = 'SELECT 1 FROM billing.tenant_month WHERE tenant_id = $1 AND debited_cents > 0';
      expect(await database.query(sql, [tenantId])).toHaveLength(1);
    },
    { timeoutMs: ARRIVES_WITHIN_MS },
  );
  const [invoice] = await database.query<{ period: string; number: string }>(
    `WITH closed AS (
       UPDATE billing.tenant_month SET closed_at = now() WHERE tenant_id = $1 RETURNING period, debited_cents
     ), counter AS (
       UPDATE billing.invoice_counter SET last_number = last_number + 1 RETURNING last_number
     )
     INSERT INTO billing.invoice (accounting_number, tenant_id, period, amount_cents, created_at)
     SELECT last_number, $1, period, debited_cents, now() FROM closed, counter
     RETURNING period, accounting_number AS number`,
    [tenantId],
  );
  return { period: invoice!.period, number: Number(invoice!.number), ...charged };
}
