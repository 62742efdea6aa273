import type { ConfigSource, Tracer } from '@tollgate/runtime';
import type { Clocks } from './ledger/clocks';

export interface BillingOptions {
  databaseUrl: string;
  /** Usage of a tenant is posted at most once in this interval. */
  postingIntervalMs?: number;
  /** Percents of a budget at which an event is recorded, from the current configuration. Called at each use. */
  thresholdsPercent?: () => readonly number[];
  /** The currency of all amounts, from the configuration. The books keep it: see `BooksCurrency`. */
  currency: () => string;
  /** A change of it must not change the currency. Absent if there is no configuration to watch. */
  config?: Pick<ConfigSource, 'addCheck' | 'onChange'>;
  /** Null or absent: no tracing. */
  tracer?: Tracer | null;
  /** A month is closed this long after its end; by default an hour. */
  invoiceCloseDelayMs?: number;
  /**
   * How often each tenant's state in the admission store is compared with the books; by default every minute. Null:
   * never, for tests of states that the watch would repair.
   */
  watchEveryMs?: number | null;
  /** The clock that decides the month, in the place of the system's and of PostgreSQL's. For tests. */
  now?: () => Date;
}

/** The options with their defaults, for all parts of billing. */
export interface ServiceOptions extends Pick<BillingOptions, 'thresholdsPercent' | 'currency' | 'config'> {
  postingIntervalMs: number;
  closeDelayMs: number;
  watchEveryMs: number | null;
  now: () => Date;
  /** Undefined if the test's clock is in its place. */
  databaseNow: Clocks['databaseNow'];
  tracer: Tracer | null;
}

export const BILLING_OPTIONS = Symbol('BILLING_OPTIONS');
