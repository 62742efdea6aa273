import { Gauge, logger, metrics, PlaceList, settlesWithin } from '@tollgate/runtime';

const inFlight = new Gauge({
  name: 'tollgate_requests_in_flight',
  help: 'Requests in progress: inference and management',
  registers: [metrics],
});

/** A running request, for the shutdown. */
export interface Running {
  /** Ends the request soon, settled at the output delivered and answered with an error. */
  cutOff(): void;
  /** Its place in the list of InFlight, which sets it. */
  place?: number | undefined;
}

/** The running requests of this process, so that a shutdown can let them finish. */
export class InFlight {
  /**
   * Set from the stop signal on: each answer ends its connection. Otherwise, where connections are balanced instead of
   * requests, a client would send its next request to this process again.
   */
  leaving = false;
  /** Set after the lame duck time: new requests are refused. */
  draining = false;
  private readonly running = new PlaceList<Running>();
  private idle: (() => void)[] = [];

  get count(): number {
    return this.running.size;
  }

  begin(request: Running): void {
    request.place = this.running.add(request);
    inFlight.inc();
  }

  /** The request is settled, and its last byte is written or its client has left. */
  end(request: Running): void {
    if (request.place !== undefined && this.running.remove(request, request.place)) inFlight.dec();
    if (this.running.size === 0) for (const resolve of this.idle.splice(0)) resolve();
  }

  /** Waits until no request runs. False: that took longer than `timeoutMs`. */
  drain(timeoutMs: number): Promise<boolean> {
    this.leaving = true;
    this.draining = true;
    if (this.running.size === 0) return Promise.resolve(true);
    return settlesWithin(timeoutMs, new Promise<void>((resolve) => this.idle.push(resolve)));
  }

  /**
   * Ends the running requests, and waits for them as `drain` does. An error in one request must not keep the others
   * from ending.
   */
  cutOff(timeoutMs: number): Promise<boolean> {
    const drained = this.drain(timeoutMs);
    for (const request of this.running) {
      try {
        request.cutOff();
      } catch (error) {
        logger('gateway').error({ err: error }, 'ending a request for the stop failed');
      }
    }
    return drained;
  }
}
