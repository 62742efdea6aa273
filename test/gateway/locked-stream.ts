import { eventually } from '@tollgate/testing';
import { Client } from 'pg';
import type { Caller, GatewayUnderTest } from './use-gateway';

/** A first token is so late: the lock is there before anything is asked for. */
export const LOCKED_WITHIN_MS = 3_000;

/** A running stream's answer, and a lock on the tenant's row, which whoever extends, records or settles needs; `release` gives it free. */
export async function lockedStream(gateway: GatewayUnderTest, caller: Caller, simulator: object) {
  const locker = new Client({ connectionString: gateway.database.url });
  await locker.connect();
  const body = {
    model: 'small',
    messages: [{ role: 'user', content: 'Say something about gateways.' }],
    stream: true,
    simulator: { ...simulator, firstTokenDelayMs: LOCKED_WITHIN_MS },
  };
  const answer = gateway.post('/v1/chat/completions', body, caller);
  await eventually(async () => expect((await gateway.snapshot(caller.tenantId)).pendingHolds).toBe(1));
  await locker.query('BEGIN');
  await locker.query('SELECT FROM admission.tenant WHERE tenant_id = $1 FOR UPDATE', [caller.tenantId]);
  return { answer, release: () => locker.end() };
}
