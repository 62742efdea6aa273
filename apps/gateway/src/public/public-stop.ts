import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { logger, settlesWithin } from '@tollgate/runtime';
import type { Server } from 'node:http';
import { InFlight } from '../inference/client/in-flight';
import { KeptConnections } from '../inference/client/kept-connections';
import { Settlements } from '../settle/settlement';

/** For settling and answering requests that are cut off. */
const CUT_OFF_TIMEOUT_MS = 2_000;
const FLUSH_TIMEOUT_MS = 2_000;

/** What the public port does in a stop before its application closes. `STOP_ORDER` of `libs/runtime` orders it. */
@Injectable()
export class PublicStop {
  constructor(
    private readonly inFlight: InFlight,
    private readonly connections: KeptConnections,
    private readonly settlements: Settlements,
    private readonly host: HttpAdapterHost,
  ) {}

  /** While requests are still accepted: each answer ends its connection from now on. */
  leave(): void {
    this.inFlight.leaving = true;
  }

  /** Lets running requests finish for `timeoutMs`, then ends the others by `cutOff`. */
  async endRequests(timeoutMs: number): Promise<void> {
    const drained = this.drain(timeoutMs);
    const { count } = this.inFlight;
    if (count > 0) logger('gateway').info({ requests: count, timeoutMs }, 'waiting for running requests to finish');
    if (!(await drained))
      logger('gateway').warn('requests did not finish in time: they are ended and settled at the output delivered');
    await this.cutOff();
  }

  /**
   * Refuses new inference requests, closes idle connections, and lets running requests finish to their last byte. False
   * when one took longer than `timeoutMs`.
   */
  drain(timeoutMs: number): Promise<boolean> {
    const drained = this.inFlight.drain(timeoutMs);
    this.connections.closeIdle();
    return drained;
  }

  /**
   * Ends the requests that outlived the drain. Streams are settled at the output delivered and end with an error event
   * and `[DONE]`. Plain requests get a 503 and are not charged. Backends are stopped. Then closes all connections,
   * including the management API's, so that `app.close()` does not wait for them. False when a request was not settled
   * and answered within CUT_OFF_TIMEOUT_MS (its client does not read, or the store does not answer).
   */
  async cutOff(): Promise<boolean> {
    const ended = await this.inFlight.cutOff(CUT_OFF_TIMEOUT_MS);
    (this.host.httpAdapter.getHttpServer() as Server).closeAllConnections();
    return ended;
  }

  /**
   * Tries late settlements once more. Waits until the usage of all ended requests is published or left to the sweeper.
   * False when this took longer than `timeoutMs`.
   */
  async flushUsage(timeoutMs = FLUSH_TIMEOUT_MS): Promise<boolean> {
    const flushed = this.settlements.flush();
    if (!(await settlesWithin(timeoutMs, flushed))) return false;
    // Rejects if the flush itself failed.
    await flushed;
    return true;
  }
}

/** @param app made by `createPublicApp` */
export const stopOf = (app: NestFastifyApplication): PublicStop => app.get(PublicStop, { strict: false });
