import { Connections, DEFAULT_UPSTREAM_LIMITS, type UpstreamLimits } from './connections';
import { type AnswerSink, Exchange, type UpstreamCall } from './exchange';

/** Sends requests to the models' backends. */
export class Upstream {
  private readonly connections: Connections;

  constructor(private readonly limits: UpstreamLimits = DEFAULT_UPSTREAM_LIMITS) {
    this.connections = new Connections(limits.connectTimeoutMs);
  }

  /** Creates a call that is not started yet. */
  exchange(call: UpstreamCall, sink: AnswerSink): Exchange {
    return new Exchange(this.connections, this.limits, call, sink);
  }

  close(): Promise<void> {
    return this.connections.close();
  }
}
