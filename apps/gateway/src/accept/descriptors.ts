import { logger } from '@tollgate/runtime';
import { readFileSync } from 'node:fs';

/** Of the operator port: people, scripts that ask much at once, probes and scrapes. */
export const MAX_OPERATOR_CONNECTIONS = 256;
/** For that port, for the connections to stores and brokers, files and the program itself. */
const RESERVED_DESCRIPTORS = 512;
/** A request has one for its client, and one for its backend. */
const DESCRIPTORS_PER_CONNECTION = 2;
const LEAST_CONNECTIONS = 16;
/** Below it a busy day meets the limit. */
const LOW_DESCRIPTORS = 8_192;

/**
 * How many connections the public port takes: what `TOLLGATE_MAX_CONNECTIONS` says, otherwise what the descriptors of
 * the process allow, so that none is ever lacking for an answer, a backend, a store or the operator. Warns where that
 * is little, or too much.
 * @param set the setting
 * @param descriptors how many the process may open; null: unknown
 */
export function publicConnections(set: number | undefined, descriptors = maxDescriptors()): number {
  if (descriptors === null) return set ?? Infinity;
  const affordable = Math.floor((descriptors - RESERVED_DESCRIPTORS) / DESCRIPTORS_PER_CONNECTION);
  const fit = Math.max(LEAST_CONNECTIONS, affordable);
  const log = logger('gateway');
  if (set !== undefined && set > fit) {
    log.warn(
      { descriptors, connections: set, affordable: fit },
      'TOLLGATE_MAX_CONNECTIONS is more than the open files that this process may have: raise ulimit -n (LimitNOFILE, --ulimit nofile), or lower it',
    );
  } else if (set === undefined && descriptors < LOW_DESCRIPTORS) {
    log.warn(
      { descriptors, connections: fit },
      'this process may open few files, so it takes few connections: raise ulimit -n (LimitNOFILE, --ulimit nofile)',
    );
  }
  return set ?? fit;
}

/**
 * The soft limit in force, which Node.js raises to the hard one at its start; null where the system does not tell (not
 * Linux).
 */
function maxDescriptors(): number | null {
  try {
    const limit = /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return limit === undefined || limit === 'unlimited' ? null : Number(limit);
  } catch {
    return null;
  }
}
