import { Injectable } from '@nestjs/common';
import { ServiceClient } from '@tollgate/messaging/nest';
import { backendName, ConfigSource } from '@tollgate/runtime';
import type { Fleet, FleetBackend } from '../answers';

/** The whole installation as its services see it. */
@Injectable()
export class FleetStates {
  constructor(
    private readonly services: ServiceClient,
    private readonly config: ConfigSource,
  ) {}

  async now(): Promise<Fleet> {
    const [{ backends, ...metering }, billing, { drained }, { run }] = await Promise.all([
      this.services.request('metering.fleet', {}),
      this.services.request('billing.fleet', {}),
      this.services.request('auth.backends.drained', {}),
      this.services.request('billing.reconcile.latest', {}),
    ]);
    const since = new Map(drained.map(({ backend, drainedAt }) => [backend, drainedAt]));
    const seen = new Map(backends.map((state) => [state.backend, state]));
    const rows = [...this.configured()].map(([backend, models]): FleetBackend => {
      const { gateways = 0, unhealthy = 0, broken = 0, inFlight = 0 } = seen.get(backend) ?? {};
      return { backend, models, drainedAt: since.get(backend) ?? null, gateways, unhealthy, broken, inFlight };
    });
    return { ...metering, ...billing, backends: rows, reconcile: run };
  }

  /** The models of each backend, in the order of `tollgate.yaml`. */
  private configured(): Map<string, string[]> {
    const models = new Map<string, string[]>();
    for (const { id, backends } of this.config.current.models)
      for (const backend of backends) {
        const name = backendName(backend);
        models.set(name, [...(models.get(name) ?? []), id]);
      }
    return models;
  }
}
