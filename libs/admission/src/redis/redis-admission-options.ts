import type { FunctionLibrary, NatMap } from '@tollgate/redis';
import type { AskForCredit } from './credit-restorer';

export interface RedisAdmissionOptions {
  /** One server, Sentinel or Cluster: see `readRedisUrl`. */
  url: string;
  leaseMs?: number;
  /** Epoch milliseconds; Redis's clock when absent. For tests. */
  now?: () => number;
  /** See `RedisLinkOptions`. For tests. */
  callTimeoutMs?: number;
  /**
   * Asks the books for a tenant (`askForCredit`): at its first news or request since Redis was emptied, or ever. No
   * request of it is admitted before. Without it the news alone count, and a tenant of which there was none has no
   * credit.
   */
  onUnknownTenant?: AskForCredit;
  /**
   * A settlement or a withdrawal is acknowledged only when so many replicas have it (WAIT, on a connection of its own);
   * default 0: when Redis has it.
   */
  settledReplicas?: number;
  /** In a cluster behind address translation. */
  natMap?: NatMap;
  /** Another release's functions. For tests. */
  library?: FunctionLibrary;
}
