import type { CatalogModel } from '../catalog/catalog';
import { showBackends } from './fleet/backend-metrics';
import type { AnswerSink, Resources, UpstreamCall } from './exchange/call';
import { Connections, DEFAULT_UPSTREAM_LIMITS, type UpstreamLimits } from './fleet/connections';
import { Exchange } from './exchange/exchange';
import { Fleet, type ManagedBackend } from './fleet/fleet';
import { Reachability } from './fleet/reachability';

/** Sends requests to the models' backends. */
export class Upstream implements Resources {
  readonly connections: Connections;
  readonly fleet = new Fleet();
  private readonly reachability: Reachability;

  constructor(private readonly limits: UpstreamLimits = DEFAULT_UPSTREAM_LIMITS) {
    this.connections = new Connections(limits.connectTimeoutMs);
    this.reachability = new Reachability(limits.connectTimeoutMs, () => this.fleet.recheck());
    showBackends(() => this.fleet.all);
  }

  /** Creates a call that is not started yet. */
  exchange(call: UpstreamCall, sink: AnswerSink): Exchange {
    return new Exchange(this, this.limits, call, sink);
  }

  /** Exactly these models are in force from now on. Running requests keep what they have. */
  follow(models: readonly CatalogModel[]): void {
    this.fleet.follow(models);
    const backends = models.flatMap((model) => model.backends);
    this.connections.keepOnly(new Set(backends.map(({ connectionKey }) => connectionKey)));
  }

  lookFor(managed: ManagedBackend): void {
    this.reachability.lookFor(managed);
  }

  close(): Promise<void> {
    this.reachability.close();
    return this.connections.close();
  }
}
