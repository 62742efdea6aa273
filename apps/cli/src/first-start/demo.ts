import { SCOPES, type KeyRow, type TenantRow, type TokenRow } from '@tollgate/contracts';
import { delay } from '@tollgate/runtime/timing';
import { Failure } from '../command/failure';
import type { OperatorClient } from '../command/operator-client';

const NAME = 'demo';
const DEMO_CREDIT_CENTS = 1_000;
const CREDIT_WAIT_MS = 10_000;
const CREDIT_POLL_MS = 20;
/** Services that have just started may still be dividing their work. */
export const REACHABLE_WAIT_MS = 60_000;
const REACHABLE_POLL_MS = 500;

export interface Demo {
  tenantId: string;
  /** Shown only once. */
  key: string;
  /** Shown only once. It has all scopes. */
  token: string;
}

/**
 * Creates a demo tenant with 10.00 of credit, a key and a token through the public calls. Null if there are tenants.
 * The credit can be spent when this returns, so the printed curl line works at once.
 */
export async function createDemo(client: OperatorClient): Promise<Demo | null> {
  const until = Date.now() + REACHABLE_WAIT_MS;
  const firstTenant = async () => (await client.get<{ data: TenantRow[] }>('/tenants?limit=1')).data[0];
  if (await onceReachable(until, firstTenant)) return null;
  // The tenant may exist although its answer was lost. Another process may also have made one meanwhile.
  const tenant = await onceReachable(
    until,
    async () => (await firstTenant()) ?? (await client.post<{ data: TenantRow }>('/tenants', { name: NAME })).data,
  );
  if (tenant.name !== NAME) return null;
  const path = `/tenants/${tenant.id}`;
  const post = <T>(to: string, body: object) => onceReachable(until, () => client.post<{ data: T }>(path + to, body));
  const { data: key } = await post<KeyRow & { key: string }>('/keys', { name: NAME });
  const { data: token } = await post<TokenRow & { token: string }>('/tokens', { name: NAME, scopes: [...SCOPES] });
  await post('/credit', { amountCents: DEMO_CREDIT_CENTS, ref: NAME });
  await onceReachable(until, () => untilCreditIsUsable(client, tenant.id));
  return { tenantId: tenant.id, key: key.key, token: token.token };
}

/** Repeats the request until then while the answer is `unavailable`. */
export async function onceReachable<T>(until: number, ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'unavailable' || Date.now() >= until) throw error;
      await delay(REACHABLE_POLL_MS);
    }
  }
}

async function untilCreditIsUsable(client: OperatorClient, tenantId: string): Promise<void> {
  const until = Date.now() + CREDIT_WAIT_MS;
  while (Date.now() < until) {
    const { data } = await client.get<{ data: { spendableCents: number | null } }>(
      `/tenants/${tenantId}/credit?limit=1`,
    );
    if ((data.spendableCents ?? 0) > 0) return;
    await delay(CREDIT_POLL_MS);
  }
  throw new Error(`the credit of tenant ${tenantId} could not be spent within ${CREDIT_WAIT_MS} ms`);
}
