import { newId } from '@tollgate/contracts';
import type { AdmissionStore, AdmitRequest, Claim, RecallResult, SettleResult } from '../admission-store';
import { type Fixture, TOKEN_NANOS } from './store.fixture';

type Recalled =
  Exclude<RecallResult, { kind: 'settled' }> | { kind: 'settled'; fingerprint: string; sealed: string | null };

/** A claim with the fingerprint of its body. */
export const claimOf = (id = newId('key')): Claim => ({ id, fingerprint: `print of ${id}` });

/** Admits a request with this claim. */
export async function admit(f: Fixture, claimId: string, more: Partial<AdmitRequest> = {}, store = f.store) {
  const request = f.request({ claim: claimOf(claimId), ...more });
  const [result] = await store.admit([request]);
  if (result instanceof Error) throw result;
  return { id: request.draft.id, request, got: result!.kind === 'held' ? 'held' : result!.reason };
}

/** With the answer, whose length must be the one that was recalled. */
export async function recall(f: Fixture, claimId: string, store = f.store): Promise<Recalled> {
  const claim = { tenantId: f.tenantId, claimId };
  const [result] = await store.recall([claim]);
  if (result instanceof Error) throw result;
  if (result!.kind !== 'settled') return result!;
  const { kind, fingerprint, answerChars } = result!;
  const [sealed] = await store.answers([{ ...claim, fingerprint, answerChars: answerChars ?? 0 }]);
  if (sealed instanceof Error) throw sealed;
  expect(answerChars).toBe(sealed === null ? null : sealed!.length);
  return { kind, fingerprint, sealed: sealed! };
}

/** Settles it, with its sealed answer. */
export async function settle(
  f: Fixture,
  id: string,
  claimId: string,
  { sealed = 'sealed', store = f.store }: { sealed?: string | null; store?: AdmissionStore } = {},
): Promise<SettleResult> {
  const [result] = await store.settle([{ event: f.event(id, TOKEN_NANOS), answer: { claimId, sealed } }]);
  if (result instanceof Error) throw result;
  return result!;
}
