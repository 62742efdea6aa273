import type { ConfigSource } from '@tollgate/runtime';
import type { Prices } from './price/prices';

export interface MeteringOptions {
  databaseUrl: string;
  /** How often the admission store is asked for lost usage. */
  sweepIntervalMs?: number;
  /** A settled hold that the ledger has not confirmed for so long is sent again. */
  confirmAfterMs?: number;
  /**
   * The configuration, which says what models cost and where the engines' counters are. Absent: only prices that were
   * kept are known, and no engine is sampled.
   */
  config?: ConfigSource;
  /** Absent: those that the configuration has and had. */
  prices?: Prices;
  /** Base URL (ends in /v1) that the backend url "simulator:" stands for. */
  simulatorUrl?: string | undefined;
}

export const METERING_OPTIONS = Symbol('METERING_OPTIONS');
