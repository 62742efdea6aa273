import { idBound, newId, type UsageEvent } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { askOperator } from '../ask';
import { useServices } from '../services';
import { runTollgate, useDataDirectory } from '../tollgate-process';

interface Owner {
  tenantId: string;
  keyId: string;
}

/** The month of the requests. */
export const MONTH = 'from=2026-10-01&to=2026-11-01';
/** The number of requests of each tenant. */
export const REQUESTS = 60;
export const nanosOf = (index: number) => BigInt(index + 1) * 1_000_000n + 7n;
/** The cost of all requests of a tenant. */
export const TOTAL = Array.from({ length: REQUESTS }, (_, index) => nanosOf(index)).reduce((sum, one) => sum + one);

/** An id of this time. `newId` never goes back. */
const requestId = (ms: number) => idBound('req', ms).slice(0, 14) + newId('req').slice(14);

/** The first one of a tenant fails. */
export function eventOf(owner: Owner, endedMs: number, index: number): UsageEvent {
  const requestNanos = String(nanosOf(index));
  return {
    ...{ id: requestId(endedMs), ...owner, model: 'sim-small', kind: 'chat', stream: false },
    price: { version: 'test', inputFemtos: '0', cachedInputFemtos: '0', outputFemtos: '0', requestNanos },
    ...{ startedAt: new Date(endedMs).toISOString(), endedAt: new Date(endedMs).toISOString() },
    ...{ promptTokens: 10, cachedTokens: 3, completionTokens: 5, reasoningTokens: 2 },
    ...{ costNanos: requestNanos, overrunNanos: '0', backend: `http://gpu-${index % 2}/v1` },
    ...{ estimated: false, outcome: index === 0 ? 'upstream_error' : 'complete' },
  };
}

/**
 * Services with two tenants, each with a key and requests in October 2026, the last of them in its last millisecond.
 */
export function useExportedUsage() {
  const services = useServices();
  const directory = useDataDirectory(services);
  const ask = askOperator(services);
  const exported = async (query: string) => (await ask(`/usage/export?${query}`)).text;
  const tollgate = (...args: string[]) => runTollgate(args, { TOLLGATE_DATA_DIR: directory.path });
  const owners: Owner[] = [];
  beforeAll(async () => {
    const events: UsageEvent[] = [];
    for (const [number, name] of ['=Acme, "Ltd"', 'Widgets'].entries()) {
      const externalId = `crm-${number}`;
      const { id: tenantId } = await services.messages.request('auth.tenants.create', { name, externalId });
      const body = { name: 'prod', owner: 'anna', tags: ['batch', 'team:search'] };
      const keyId = (await ask(`/tenants/${tenantId}/keys`, { body })).json.data.id as string;
      owners.push({ tenantId, keyId });
      for (let index = 0; index < REQUESTS; index++) {
        const endedMs = Date.UTC(2026, 10, 1) - 1 - (REQUESTS - 1 - index) * 3_600_000;
        events.push(eventOf({ tenantId, keyId }, endedMs, index));
      }
    }
    await services.messages.publish('usage-events', events);
    await eventually(async () => {
      for (const { tenantId } of owners) {
        const { json } = await ask(`/tenants/${tenantId}/usage?${MONTH}`);
        expect(json.data.totals.requests).toBe(REQUESTS);
      }
    });
  });
  return { services, ask, exported, tollgate, owners };
}
