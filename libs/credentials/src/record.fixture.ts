import { hashCredential, newId } from '@tollgate/contracts';
import { eventually, Standstill } from '@tollgate/testing';
import { randomUUID } from 'node:crypto';
import type { CredentialRecord, CredentialStore } from './credential-store';

/** A key of a new tenant, unless the test says otherwise. */
export function aRecord(over: Partial<CredentialRecord> = {}): CredentialRecord {
  return {
    hash: hashCredential(randomUUID()),
    kind: 'key',
    id: newId('key'),
    tenantId: newId('ten'),
    plan: 'default',
    profile: 'default',
    scopes: [],
    models: null,
    expiresAtMs: null,
    revokedAtMs: null,
    version: 1,
    ...over,
  };
}

/**
 * Puts records in a test of another guarantee than the time limits of a store, which a busy machine may let pass. A
 * repeat counts as one.
 */
export const put = (store: CredentialStore, records: readonly CredentialRecord[]): Promise<void> =>
  eventually(() => store.put(records));

/** Looks a record up, again where the store did not answer in time. */
export const lookup = (store: CredentialStore, hash: string): Promise<CredentialRecord | null> =>
  eventually(() => store.lookup(hash));

/** Opens a store and starts it, both again where its backing store did not answer in time. */
export const started = <Link extends { close(): Promise<void> }>(
  open: () => Promise<{ store: CredentialStore; link: Link }>,
): Promise<{ store: CredentialStore; link: Link }> =>
  eventually(async () => {
    const { store, link } = await open();
    try {
      await store.start();
      return { store, link };
    } catch (error) {
      await store.close();
      await link.close();
      throw error;
    }
  });

/** What a store has in memory. Throws while its last check is so old that it would check again before answering. */
export function inMemory(store: CredentialStore, hash: string): CredentialRecord | null {
  const found = store.lookup(hash);
  if (!(found instanceof Promise)) return found;
  found.catch(() => {});
  throw new Error('it looks again');
}

/**
 * Milliseconds from now until the last look-up that gave the unrevoked record in any of these processes. Resolves when
 * all give the revoked one. A process that refuses, or checks again first, admits no one. A standstill of the test is
 * not counted.
 */
export async function revokedAfterMs(stores: readonly CredentialStore[], hash: string): Promise<number> {
  const from = performance.now();
  const standstill = new Standstill();
  let lastMs = 0;
  const seenRevoked = async (store: CredentialStore): Promise<void> => {
    const askedMs = performance.now() - from - standstill.ms;
    const found = await store.lookup(hash);
    if (found?.revokedAtMs) return;
    if (found) lastMs = Math.max(lastMs, askedMs);
    throw new Error('it is not revoked here');
  };
  try {
    await Promise.all(stores.map((store) => eventually(() => seenRevoked(store), { everyMs: 2 })));
  } finally {
    standstill.end();
  }
  return lastMs;
}
