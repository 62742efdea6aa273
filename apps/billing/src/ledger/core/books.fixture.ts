import type { Books } from './books';

/** The books of a tenant that has none yet, as the migrations' defaults make them. */
export function newBooks(tenantId: string): Books {
  return {
    tenantId,
    version: 0n,
    balanceCents: 0n,
    lastSequence: 0n,
    lastCover: 0n,
    carriedNanos: 0n,
    gatheredNanos: 0n,
    overrunNanos: 0n,
    suspended: false,
  };
}
