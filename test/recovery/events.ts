import { costNanos, newId, type Charge, type BalanceUpdate, type UsageEvent } from '@tollgate/contracts';
import { stampPrice } from '@tollgate/runtime';

/** The price in the configuration of `writeConfig`. */
const PRICE = stampPrice({ input: '50', output: '200', request: '0' }, 'chat');

/** An event as a gateway publishes it. By default the request ended now and cost about 0.15 cents. */
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

/** A charge as metering publishes it. */
export function charge(tenantId: string, more: Partial<Charge> = {}): Charge {
  const { id, keyId, costNanos: nanos, endedAt } = usageEvent(tenantId);
  return { id, tenantId, keyId, costNanos: nanos, endedAt, ...more };
}

/** A balance update as billing publishes it. */
export function balanceUpdate(tenantId: string, version: number, balanceNanos: bigint): BalanceUpdate {
  return { tenantId, version: String(version), balanceNanos: String(balanceNanos), releases: [], suspended: false };
}
