import { SCOPES, type KeyRow, type TenantRow, type TokenRow } from '@tollgate/contracts';
import { setTimeout } from 'node:timers/promises';
import type { OperatorClient } from './operator-client';

const DEMO_CREDIT_CENTS = 1_000;
const CREDIT_WAIT_MS = 10_000;
const CREDIT_POLL_MS = 20;

export interface Demo {
  tenantId: string;
  /** Shown this once. */
  key: string;
  /** Shown this once; has all scopes. */
  token: string;
}

/**
 * Where there is no tenant yet: a tenant with 10.00 of credit, a key and a token, made as anybody's are. Null where there are tenants. The credit can be spent when this
 * returns, so that the curl line works the moment it is printed.
 */
export async function createDemo(client: OperatorClient): Promise<Demo | null> {
  const { data: tenants } = await client.get<{ data: TenantRow[] }>('/tenants?limit=1');
  if (tenants.length > 0) return null;
  const { data: tenant } = await client.post<{ data: TenantRow }>('/tenants', { name: 'demo' });
  const path = `/tenants/${tenant.id}`;
  const { data: key } = await client.post<{ data: KeyRow & { key: string } }>(`${path}/keys`, { name: 'demo' });
  const { data: token } = await client.post<{ data: TokenRow & { token: string } }>(`${path}/tokens`, {
    name: 'demo',
    scopes: [...SCOPES],
  });
  await client.post(`${path}/credit`, { amountCents: DEMO_CREDIT_CENTS, ref: 'demo' });
  await untilCreditIsUsable(client, tenant.id);
  return { tenantId: tenant.id, key: key.key, token: token.token };
}

async function untilCreditIsUsable(client: OperatorClient, tenantId: string): Promise<void> {
  const until = Date.now() + CREDIT_WAIT_MS;
  while (Date.now() < until) {
    const { data } = await client.get<{ data: { spendableCents: number | null } }>(
      `/tenants/${tenantId}/credit?limit=1`,
    );
    if ((data.spendableCents ?? 0) > 0) return;
    await setTimeout(CREDIT_POLL_MS);
  }
  throw new Error(`the credit of tenant ${tenantId} could not be spent within ${CREDIT_WAIT_MS} ms`);
}
