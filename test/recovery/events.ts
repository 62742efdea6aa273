import { costNanos, newId, type Charge, type BalanceUpdate, type UsageEvent } from '@tollgate/contracts';
import { stampPrice } from '@tollgate/runtime';

/** As the configuration of `writeConfig` has it. */
const PRICE = stampPrice({ input: '50', output: '200', request: '0' }, 'chat');

/** As a gateway publishes it, of a request that ended now unless told; it costs 0.15 cents or so. */
export function usageEvent(tenantId: string, more: Partial<UsageEvent> = {}): UsageEvent {
  const endedAt = more.endedAt ?? new Date().toISOString();
  const tokens = { promptTokens: 8, cachedTokens: 0, completionTokens: 5 };
  return {
    id: newId('req'),
    tenantId,
    keyId: newId('key'),
    model: 'sim-large',
    kind: 'chat',
    stream: false,
    price: PRICE,
    startedAt: endedAt,
    ...tokens,
    costNanos: String(costNanos(tokens, PRICE)),
    overrunNanos: '0',
    estimated: false,
    outcome: 'complete',
    ...more,
    endedAt,
  };
}

/** As metering publishes it. */
export function charge(tenantId: string, more: Partial<Charge> = {}): Charge {
  const { id, keyId, costNanos: nanos, endedAt } = usageEvent(tenantId);
  return { id, tenantId, keyId, costNanos: nanos, endedAt, ...more };
}

/** As billing publishes it. */
export function balanceUpdate(tenantId: string, version: number, balanceNanos: bigint): BalanceUpdate {
  return { tenantId, version: String(version), balanceNanos: String(balanceNanos), releases: [], suspended: false };
}
