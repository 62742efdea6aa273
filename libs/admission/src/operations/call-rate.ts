/** A request of a management token. */
export interface ManagementCall {
  tenantId: string;
  tokenId: string;
  /** The limit of the token: that many at once, then spread over the minute. */
  perMinute: number;
}

const MINUTE_US = 60_000_000;

export function callIntervalUs({ perMinute }: ManagementCall): number {
  return Math.ceil(MINUTE_US / perMinute);
}

/** Whole milliseconds, at least 1 unless 0. */
export function waitMs(us: number): number {
  return Math.ceil(us / 1_000);
}
