import { costNanos, newId, type UsageEvent } from '@tollgate/contracts';
import type { Prices } from './price/prices';

export const PRICE = {
  version: 'a1b2c3d4',
  inputFemtos: '150000000',
  cachedInputFemtos: '75000000',
  outputFemtos: '600000000',
  requestNanos: '0',
};

/** For tests of other subjects: every price is in force. */
export const ANY_PRICE: Prices = { find: ({ price }) => price, lookAgain: async () => false };

export const TENANT = newId('ten');
export const KEY = newId('key');

/** A valid event of the tests' tenant and key, settled at the rated cost. By default it ended just now. */
export function usageEvent(changes: Partial<UsageEvent> = {}): UsageEvent {
  const endedAt = changes.endedAt ?? new Date().toISOString();
  const event: UsageEvent = {
    id: newId('req'),
    tenantId: TENANT,
    keyId: KEY,
    model: 'sim-small',
    kind: 'chat',
    stream: false,
    price: PRICE,
    startedAt: endedAt,
    endedAt,
    promptTokens: 100,
    cachedTokens: 20,
    completionTokens: 50,
    costNanos: '',
    overrunNanos: '0',
    estimated: false,
    outcome: 'complete',
    ...changes,
  };
  return { ...event, costNanos: changes.costNanos ?? String(costNanos(event, event.price)) };
}
