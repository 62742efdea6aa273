import type { Snapshot } from '../admission-store';
import type { Row } from './connections';

/** A row of the SQL function `snapshot`. */
export function readSnapshot(row: Row): Snapshot {
  return {
    tenantId: row[0]!,
    version: BigInt(row[1]!),
    balanceNanos: BigInt(row[2]!),
    settledNanos: BigInt(row[3]!),
    pendingNanos: BigInt(row[4]!),
    pendingHolds: Number(row[5]),
    settledHolds: Number(row[6]),
    holdRowsPendingNanos: BigInt(row[7]!),
    holdRowsSettledNanos: BigInt(row[8]!),
    oldestSettledId: row[9] ?? null,
    suspended: row[10] === 't',
    inFlight: BigInt(row[11]!),
    withdrawnNanos: BigInt(row[12]!),
  };
}
