import { StartError } from '@tollgate/runtime';
import type { Redis } from 'ioredis';
import { within } from './breaker';

/**
 * Rejects with a StartError if a master deletes keys when its memory is full. An evicted key is lost credit or a lost
 * credential, and nothing distinguishes it from one that never was. A master that does not answer in time says nothing.
 */
export async function assertNoEviction(masters: Iterable<Redis>, timeoutMs: number, where: string): Promise<void> {
  const answers: string[] = [];
  const asking = [...masters].map(async (master) => answers.push(await master.info('memory')));
  await within(timeoutMs, Promise.allSettled(asking));
  for (const policy of answers.map(evictionPolicy))
    if (policy !== null)
      throw new StartError(
        `${where}: Redis deletes data when its memory is full (maxmemory-policy ${policy}), also credit and keys: ` +
          'set maxmemory-policy to noeviction.',
      );
}

/** The policy by which a server with this answer to INFO evicts keys. Null: it evicts none. */
export function evictionPolicy(memory: string): string | null {
  const field = (name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(memory)?.[1];
  const policy = field('maxmemory_policy') ?? 'noeviction';
  // Without a limit nothing is evicted. A provider may hide the limit.
  return policy === 'noeviction' || field('maxmemory') === '0' ? null : policy;
}
