import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { MAX_REPORTED_BACKENDS, newId, type BackendReport } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { logger, PeriodicTask } from '@tollgate/runtime';
import { Upstream } from './upstream';

const INTERVAL_MS = 2_000;

/**
 * Tells metering every few seconds how this process sees its backends, for the console. A lost report does no harm: the
 * next one has everything.
 */
@Injectable()
export class BackendReports implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly source = newId('msg');
  private readonly task = new PeriodicTask({
    run: () => this.report(),
    failed: (error) =>
      logger('gateway').debug(
        { reason: (error as Error).message },
        "reporting the backends' states to metering failed; retrying",
      ),
    everyMs: INTERVAL_MS,
  });

  constructor(
    private readonly services: ServiceClient,
    private readonly upstream: Upstream,
  ) {}

  onApplicationBootstrap(): void {
    this.task.start();
  }

  onApplicationShutdown(): void {
    void this.task.stop();
  }

  private async report(): Promise<void> {
    const backends = [...this.upstream.fleet.all]
      .slice(0, MAX_REPORTED_BACKENDS)
      .map(({ name: backend, healthy, openBreakers, inFlight }): BackendReport => ({
        backend,
        healthy,
        openBreakers,
        inFlight,
      }));
    if (backends.length > 0) await this.services.request('metering.backends.report', { source: this.source, backends });
  }
}
