import { logger } from '../logging/logging';
import { Counter, metrics } from '../metrics/metrics';

/** The secrets that have a former value while their callers change to a new one. */
const NAMES = { operator: 'operator secret', metrics: 'metrics token' } as const;

const requests = new Counter({
  name: 'tollgate_former_secret_requests_total',
  help: 'Requests with a former secret, by secret: operator, metrics. Remove the former one when it stays the same',
  labelNames: ['secret'] as const,
  registers: [metrics],
});

/**
 * Shows whether callers still use a former secret: by a metric, which is 0 from the start on if there is a former one,
 * and by a log line with the address of the first such caller.
 */
export class FormerSecretUse {
  private isLogged = false;

  /** `accepted`: the secret in force, then the former ones. */
  constructor(
    private readonly secret: keyof typeof NAMES,
    accepted: readonly unknown[],
  ) {
    if (accepted.length > 1) requests.inc({ secret }, 0);
  }

  /** `place`: of the caller's secret among the accepted ones. The first is in force; less than 0: none of them. */
  note(place: number, address: string | undefined): void {
    if (place <= 0) return;
    requests.inc({ secret: this.secret });
    if (this.isLogged) return;
    this.isLogged = true;
    logger('secrets').warn({ address }, `a caller uses the former ${NAMES[this.secret]}`);
  }
}
