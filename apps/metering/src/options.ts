import type { ConfigSource, Tracer } from '@tollgate/runtime';
import type { Prices } from './price/prices';

export interface MeteringOptions {
  databaseUrl: string;
  /** How often the admission store is asked for lost usage. */
  sweepIntervalMs?: number;
  /** A settled hold that the ledger has not confirmed for this long is published again. */
  confirmAfterMs?: number;
  /** Months after its own end for which a month of usage events is kept. null: for ever, in tests. */
  usageKeptMonths?: number | null;
  /**
   * The configuration, which says what models cost and where the engines' counters are. Absent: only stored prices are
   * known, and no engine is sampled.
   */
  config?: ConfigSource;
  /** Absent: the present and past prices of the configuration. */
  prices?: Prices;
  /** Null or absent: no tracing. */
  tracer?: Tracer | null;
  /** Base URL (ends in /v1) for the backend url "simulator:". */
  simulatorUrl?: string | undefined;
}

export const METERING_OPTIONS = Symbol('METERING_OPTIONS');
