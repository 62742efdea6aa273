import { onceServed } from '@tollgate/testing';
import { Client } from 'pg';
import type { Caller, GatewayUnderTest } from '../use-gateway';

/** The delay of the first token, so that the lock is taken before the stream needs it. */
export const LOCKED_WITHIN_MS = 3_000;
const HELD_WITHIN_MS = 60_000;

/**
 * Locks the tenant's row as soon as a request that is sent after this call holds credit. Extending, recording and
 * settling need that row. `locked` resolves when it is locked, and `release` unlocks it. The server itself waits for
 * the hold, because a query from here might be too late.
 */
export async function lockOnceHeld({ database }: GatewayUnderTest, { tenantId }: Caller) {
  const locker = new Client({ connectionString: database.url });
  await locker.connect();
  await locker.query(`BEGIN; SET LOCAL statement_timeout = ${HELD_WITHIN_MS}`);
  const locked = locker.query(`DO $$ BEGIN
    WHILE NOT EXISTS (SELECT FROM admission.hold WHERE tenant_id = '${tenantId}') LOOP PERFORM pg_sleep(0.01); END LOOP;
    PERFORM FROM admission.tenant WHERE tenant_id = '${tenantId}' FOR UPDATE;
  END $$`);
  locked.catch(() => {});
  return { locked, release: () => locker.end() };
}

/** The answer of a running stream, with a lock from `lockOnceHeld`. */
export async function lockedStream(gateway: GatewayUnderTest, caller: Caller, simulator: object, model = 'small') {
  const { locked, release } = await lockOnceHeld(gateway, caller);
  const body = {
    model,
    messages: [{ role: 'user', content: 'Say something about gateways.' }],
    stream: true,
    simulator: { ...simulator, firstTokenDelayMs: LOCKED_WITHIN_MS },
  };
  const answer = onceServed(() => gateway.post('/v1/chat/completions', body, caller));
  await locked;
  return { answer, release };
}
