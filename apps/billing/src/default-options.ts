import { databaseClock } from '@tollgate/postgres';
import { DEFAULT_CLOSE_DELAY_MS } from './invoices/invoice-closer';
import type { BillingOptions, ServiceOptions } from './options';
import { ROUND_MS } from './repair/poison-watch';

const DEFAULT_POSTING_INTERVAL_MS = 1_000;

export function withDefaults(given: BillingOptions): ServiceOptions {
  return {
    postingIntervalMs: given.postingIntervalMs ?? DEFAULT_POSTING_INTERVAL_MS,
    closeDelayMs: given.invoiceCloseDelayMs ?? DEFAULT_CLOSE_DELAY_MS,
    watchEveryMs: given.watchEveryMs === undefined ? ROUND_MS : given.watchEveryMs,
    ...(given.thresholdsPercent && { thresholdsPercent: given.thresholdsPercent }),
    currency: given.currency,
    ...(given.config && { config: given.config }),
    tracer: given.tracer ?? null,
    now: given.now ?? (() => new Date()),
    databaseNow: given.now ? undefined : databaseClock,
  };
}
