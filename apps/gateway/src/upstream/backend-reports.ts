import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { MAX_REPORTED_BACKENDS, newId, type BackendReport } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { logger } from '@tollgate/runtime';
import { Upstream } from './upstream';

const INTERVAL_MS = 2_000;

/**
 * Tells metering every few seconds how this process sees its backends, for the console. A lost report does no harm: the
 * next one has everything.
 */
@Injectable()
export class BackendReports implements OnApplicationBootstrap {
  private readonly source = newId('msg');
  private timer: NodeJS.Timeout | null = null;
  private closed = false;

  constructor(
    private readonly services: ServiceClient,
    private readonly upstream: Upstream,
  ) {}

  onApplicationBootstrap(): void {
    void this.follow();
  }

  close(): void {
    this.closed = true;
    if (this.timer) clearTimeout(this.timer);
  }

  /** Never rejects. */
  private async follow(): Promise<void> {
    const backends = [...this.upstream.fleet.all]
      .slice(0, MAX_REPORTED_BACKENDS)
      .map(({ name, healthy, openBreakers, inFlight }): BackendReport => ({
        ...{ backend: name, healthy, openBreakers, inFlight },
      }));
    try {
      if (backends.length > 0)
        await this.services.request('metering.backends.report', { source: this.source, backends });
    } catch (error) {
      logger('gateway').debug({ reason: (error as Error).message }, 'the states of the backends were not taken');
    }
    if (!this.closed) this.timer = setTimeout(() => void this.follow(), INTERVAL_MS).unref();
  }
}
