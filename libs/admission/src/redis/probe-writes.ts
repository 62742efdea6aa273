import { UnavailableError } from '@tollgate/contracts';
import type { Call, RedisLink } from '@tollgate/redis';

/** Enough to reach every shard of a cluster, almost certainly. */
const SLOTS = 16;
const KEPT_MS = 60_000;
export const REPLICAS_TIMEOUT_MS = 300;

/**
 * Writes as an admission and a settlement do, to keys that nobody reads. Rejects when no shard accepts the write, or
 * none has it on the number of replicas that a settlement waits for.
 */
export async function probeWrites(link: RedisLink, replicas: number): Promise<void> {
  const keys = Array.from({ length: SLOTS }, (_, n) => `tga:{probe${n}}:write`);
  const replies = await link.call(keys.map((key): Call => ({ command: 'set', keys: [key], args: [1, 'PX', KEPT_MS] })));
  const written = keys.filter((_, n) => !(replies[n] instanceof Error));
  if (written.length === 0) throw cannotWrite(replies[0] as Error);
  if (replicas === 0) return;
  const missed = await link.waitForReplicas(written, replicas, REPLICAS_TIMEOUT_MS);
  if (missed.every((error) => error !== undefined)) throw cannotWrite(missed[0]!);
}

const cannotWrite = ({ message, cause }: Error): UnavailableError =>
  new UnavailableError(`Redis cannot be written: ${cause instanceof Error ? cause.message : message}`);
