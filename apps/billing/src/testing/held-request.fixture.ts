import { PostgresAdmissionStore, type AdmissionStore, type AdmitRequest } from '@tollgate/admission';
import { newId, type UsageEvent } from '@tollgate/contracts';
import { PATIENT_CALL_MS, type TestDatabase } from '@tollgate/testing';

const WIDE = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrency: 1_000_000 };
const PRICE = { version: 'test', inputFemtos: '0', cachedInputFemtos: '0', outputFemtos: '0', requestNanos: '0' };

export type Draft = AdmitRequest['draft'];

/** The real admission store. Call it inside a describe, so that it closes before the database is dropped. */
export function useAdmissionStore(database: TestDatabase): PostgresAdmissionStore {
  const store = new PostgresAdmissionStore({ url: database.url, callTimeoutMs: PATIENT_CALL_MS });
  beforeAll(() => store.start());
  afterAll(() => store.close());
  return store;
}

/** Asks to hold this amount for a request. Returns its draft, or null when it is refused. */
export async function holdRequest(store: AdmissionStore, tenantId: string, nanos: bigint): Promise<Draft | null> {
  const draft = {
    id: newId('req'),
    tenantId,
    keyId: 'key_test',
    model: 'm',
    kind: 'chat' as const,
    stream: false,
    price: PRICE,
    startedAt: new Date().toISOString(),
  };
  const [result] = await store.admit([
    {
      draft,
      tenantLimits: WIDE,
      keyLimits: WIDE,
      keyBudgetNanos: null,
      tenantBudgetNanos: null,
      promptTokens: 0,
      promptFemtos: nanos * 1_000_000n,
      outputFemtosPerToken: 0n,
      wantOutputTokens: 0,
      minOutputTokens: 0,
      boundIsExact: true,
    },
  ]);
  if (result instanceof Error) throw result;
  return result!.kind === 'held' ? draft : null;
}

/** Settles a held request at this cost. */
export function settleRequest(store: AdmissionStore, draft: Draft, costNanos: bigint) {
  const event: UsageEvent = {
    ...draft,
    promptTokens: 0,
    cachedTokens: 0,
    completionTokens: 1,
    costNanos: String(costNanos),
    overrunNanos: '0',
    estimated: false,
    outcome: 'complete',
    endedAt: new Date().toISOString(),
  };
  return store.settle([{ event }]);
}
