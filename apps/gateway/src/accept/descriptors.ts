import { logger } from '@tollgate/runtime';
import { readFileSync } from 'node:fs';

/** Limit of the operator port: people, scripts with many requests at once, probes and scrapes. */
export const MAX_OPERATOR_CONNECTIONS = 256;
/** For the operator port, the connections to stores and brokers, files and the program itself. */
const RESERVED_DESCRIPTORS = 512;
/** A request needs one for its client and one for its backend. */
const DESCRIPTORS_PER_CONNECTION = 2;
const LEAST_CONNECTIONS = 16;
/** With fewer, a busy day can reach the limit. */
const LOW_DESCRIPTORS = 8_192;

/**
 * How many connections the public port accepts: `TOLLGATE_MAX_CONNECTIONS`, or by default what the open files of the
 * process allow. The default leaves descriptors for answers, backends, stores and the operator. Warns when the setting
 * exceeds the open files, or when they are few.
 * @param set the setting
 * @param descriptors how many files the process may open; null: unknown
 */
export function publicConnections(set: number | undefined, descriptors = maxDescriptors()): number {
  if (descriptors === null) return set ?? Infinity;
  const affordable = Math.floor((descriptors - RESERVED_DESCRIPTORS) / DESCRIPTORS_PER_CONNECTION);
  const fit = Math.max(LEAST_CONNECTIONS, affordable);
  const log = logger('gateway');
  if (set !== undefined && set > fit) {
    log.warn(
      { descriptors, connections: set, affordable: fit },
      'TOLLGATE_MAX_CONNECTIONS exceeds what the limit of open files allows: ' +
        'raise ulimit -n (LimitNOFILE, --ulimit nofile), or lower the setting',
    );
  } else if (set === undefined && descriptors < LOW_DESCRIPTORS) {
    log.warn(
      { descriptors, connections: fit },
      'the limit of open files is low, so few connections are accepted: raise ulimit -n (LimitNOFILE, --ulimit nofile)',
    );
  }
  return set ?? fit;
}

/** The soft limit in force, which Node.js raises to the hard limit at its start. Null when unknown (not Linux). */
function maxDescriptors(): number | null {
  try {
    const limit = /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return limit === undefined || limit === 'unlimited' ? null : Number(limit);
  } catch {
    return null;
  }
}
