import { mintCredential, SCOPES } from '@tollgate/contracts';
import type { AdmissionStore } from '@tollgate/admission';
import type { Messages } from '@tollgate/messaging';
import { Client } from 'pg';

const DEMO_CREDIT_CENTS = 1_000;
const CREDIT_WAIT_MS = 5_000;
const CREDIT_POLL_MS = 10;

export interface Demo {
  tenantId: string;
  /** Shown this once. */
  key: string;
  /** Shown this once; has all scopes. */
  token: string;
}

/**
 * On a database without any tenant: a tenant with 10.00 of credit, a key and a token, made through the same requests as anybody's. Null where there
 * are tenants. Processes that start together on one database make one demo between them.
 */
export async function createDemo(
  databaseUrl: string,
  messages: Messages,
  admission: AdmissionStore,
): Promise<Demo | null> {
  const lock = new Client({ connectionString: databaseUrl, application_name: 'tollgate-demo' });
  await lock.connect();
  try {
    await lock.query(`SELECT pg_advisory_lock(hashtextextended('tollgate-demo', 0))`);
    const { data } = await messages.request('auth.tenants.list', { limit: 1 });
    if (data.length > 0) return null;
    const tenant = await messages.request('auth.tenants.create', { name: 'demo' });
    const key = mintCredential('key');
    const token = mintCredential('token');
    await messages.request('auth.keys.create', { tenantId: tenant.id, name: 'demo', hash: key.hash, last4: key.last4 });
    await messages.request('auth.tokens.create', {
      tenantId: tenant.id,
      name: 'demo',
      hash: token.hash,
      last4: token.last4,
      scopes: [...SCOPES],
    });
    await messages.request('billing.credit.add', {
      tenantId: tenant.id,
      amountCents: DEMO_CREDIT_CENTS,
      source: 'manual',
      ref: 'demo',
    });
    await untilCreditIsUsable(admission, tenant.id);
    return { tenantId: tenant.id, key: key.value, token: token.value };
  } finally {
    await lock.end();
  }
}

/** So that the curl line works the moment it is printed. */
async function untilCreditIsUsable(admission: AdmissionStore, tenantId: string): Promise<void> {
  const until = Date.now() + CREDIT_WAIT_MS;
  while (Date.now() < until) {
    const [snapshot] = await admission.snapshot({ tenantId, limit: 1 });
    if (snapshot && snapshot.balanceNanos > 0n) return;
    await new Promise((resolve) => setTimeout(resolve, CREDIT_POLL_MS));
  }
  throw new Error(`the credit of tenant ${tenantId} did not reach admission within ${CREDIT_WAIT_MS} ms`);
}
