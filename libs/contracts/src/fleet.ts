// What an operator sees of the whole installation at a glance. Metrics have the details.

/** A backend as one gateway process sees it. */
export interface BackendReport {
  /** Like `UsageEvent.backend`. */
  backend: string;
  /** Its health checks succeed, or it has none. */
  healthy: boolean;
  /** Models for which its circuit breaker is open. */
  openBreakers: number;
  inFlight: number;
}

/** The maximum number of backends in one report. */
export const MAX_REPORTED_BACKENDS = 1_000;

/** A backend as all gateways see it that reported in the last seconds. */
export interface BackendState {
  backend: string;
  gateways: number;
  /** How many of them see failing health checks. */
  unhealthy: number;
  /** How many of them have an open breaker for it. */
  broken: number;
  inFlight: number;
}

/** What metering knows. Ages and lags are 0 if nothing waits. */
export interface MeteringFleet {
  /** Sums over the requests that ended in the last 24 hours, whole hours. */
  requests: number;
  promptTokens: number;
  completionTokens: number;
  /** The cost of all requests ever, decimal string. */
  settledNanos: string;
  /** The oldest charge that is on its way to billing. */
  chargesAgeSeconds: number;
  /** Quarantined usage events that wait for their operator. */
  openRefusedEvents: number;
  backends: BackendState[];
}

/** What billing knows. */
export interface BillingFleet {
  /** Sums over all tenants. */
  balanceCents: string;
  postedCents: string;
  /** Gathered and not yet in the ledger. */
  unpostedNanos: string;
  /** What running requests hold, decimal string, and how many they are. Null or absent: not known. */
  held?: { nanos: string; requests: number } | null;
  /** How late the debit of a whole cent is. */
  postingOverdueSeconds: number;
  /** How long the oldest usage has waited for credit that covers it. */
  uncoveredSeconds: number;
  /** The oldest balance update that is on its way to the admission store. */
  updatesAgeSeconds: number;
  /** Quarantined charges that are in no books since. */
  rejectedCharges: number;
}

/**
 * A price of `tollgate.yaml`, from when metering first saw it. Amounts are integers: femtos a token, nanos a request.
 */
export interface PriceVersion {
  model: string;
  version: string;
  inputFemtos: string;
  cachedInputFemtos: string;
  outputFemtos: string;
  requestNanos: string;
  firstSeenAt: string;
}
