import { Inject } from '@nestjs/common';
import type { ConfigSource } from '@tollgate/runtime';

export interface BillingOptions {
  databaseUrl: string;
  /** Usage of a tenant is posted at most once in so long. */
  postingIntervalMs?: number;
  /** Percent of a budget at which an event is recorded, as the configuration has them now; asked at each use. */
  thresholdsPercent?: () => readonly number[];
  /** Of all amounts, as the configuration has it. The books keep it: see `BooksCurrency`. */
  currency: () => string;
  /** Whose changes must not be of the currency; absent: it has none. */
  config?: Pick<ConfigSource, 'addCheck' | 'onChange'>;
  /** A month is closed so long after its end; an hour by default. */
  invoiceCloseDelayMs?: number;
  /**
   * How often each tenant's state in the admission store is held against the books; a minute by default. Null: never,
   * for tests of what it would repair.
   */
  watchEveryMs?: number | null;
  /** The clock by which months begin and end; the system's by default. For tests. */
  now?: () => Date;
}

/** The options with their defaults, as all parts of billing have them. */
export interface ServiceOptions extends Pick<BillingOptions, 'thresholdsPercent' | 'currency' | 'config'> {
  postingIntervalMs: number;
  closeDelayMs: number;
  watchEveryMs: number | null;
  now: () => Date;
}

export const SERVICE_OPTIONS = Symbol('BILLING_OPTIONS');
export const InjectOptions = (): ParameterDecorator => Inject(SERVICE_OPTIONS);
