import { UnavailableError } from '@tollgate/contracts';
import { elapsedMs, eventually } from '@tollgate/testing';
import { AdmissionClient } from '../client/admission-client';
import { Fixture } from '../suite/store.fixture';
import type { RedisAdmissionOptions } from './redis-admission-options';
import { RedisAdmissionStore } from './redis-admission-store';

/** The maximum time until a client gets its 503. */
export const REFUSAL_LIMIT_MS = 1_000;
/** No call waits for a server that is known to be silent. */
export const REFUSED_AT_ONCE_MS = 50;
export const RECOVERY_LIMIT_MS = 2_000;
/** On a busy machine. */
export const FAILOVER_LIMIT_MS = 90_000;
export const BALANCE = 10n ** 12n;

/** A fixture on the store's own clock, with the client that a gateway has. */
export async function open(
  options: RedisAdmissionOptions,
): Promise<{ f: Fixture; client: AdmissionClient; close(): Promise<void> }> {
  const f = new Fixture(async () => {
    const store = new RedisAdmissionStore(options);
    await store.start();
    return store;
  });
  await f.setUp();
  const client = new AdmissionClient(f.store);
  const close = async () => {
    await client.close();
    await f.tearDown();
  };
  return { f, client, close };
}

/** Milliseconds until the call was refused as unavailable, without the standstills of this process. */
export function refusedAfterMs(work: () => Promise<unknown>): Promise<number> {
  return elapsedMs(() => expect(work()).rejects.toThrow(UnavailableError));
}

/** Each try is refused, at last because no replica has its write. On a busy machine, a try may fail before that. */
export async function refusedWithoutReplica(work: () => Promise<unknown>): Promise<void> {
  let reason = '';
  while (!reason.includes('only 0 of 1 replicas were reached')) {
    const error: unknown = await work().catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(UnavailableError);
    reason = (error as UnavailableError).message;
  }
}

/**
 * Milliseconds until a request is admitted again, without the standstills of this process. Each refusal on the way is
 * quick.
 */
export function recoveredAfterMs(f: Fixture, client: AdmissionClient): Promise<number> {
  return elapsedMs(() =>
    eventually(async () => expect(await client.admit(f.request())).toMatchObject({ kind: 'held' }), { everyMs: 10 }),
  );
}
