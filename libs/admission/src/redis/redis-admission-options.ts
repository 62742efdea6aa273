import type { FunctionLibrary, NatMap } from '@tollgate/redis';
import type { ClaimLimits } from '../admission-store';
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
   * Asks the books for a tenant (`askForCredit`) at its first balance update or request that this Redis sees. Its
   * requests wait for the answer. Without this option only balance updates count, and a tenant without one has no
   * credit.
   */
  onUnknownTenant?: AskForCredit;
  /**
   * A settlement or a withdrawal is acknowledged when this number of replicas has it (WAIT, on a connection of its
   * own). The default 0 means: when Redis has it.
   */
  settledReplicas?: number;
  /** Those that differ from DEFAULT_CLAIM_LIMITS. */
  claims?: Partial<ClaimLimits>;
  /** In a cluster behind address translation. */
  natMap?: NatMap;
  /** The functions of another release. For tests. */
  library?: FunctionLibrary;
}
