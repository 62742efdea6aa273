import { Controller, Get, Inject, Res } from '@nestjs/common';
import { logger, metrics } from '@tollgate/runtime';
import type { FastifyReply } from 'fastify';
import { ApiError } from '../management/envelope';

export const READINESS = Symbol('readiness');
/** A probe that hangs is worse than one that says no. */
const READINESS_DEADLINE_MS = 2_000;

/** For Prometheus and the platform; without the secret, as the port is not public. */
@Controller()
export class ProbesController {
  constructor(@Inject(READINESS) private readonly ready: () => Promise<void>) {}

  @Get('livez')
  livez() {
    return { status: 'ok' };
  }

  @Get('readyz')
  async readyz() {
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`no answer within ${READINESS_DEADLINE_MS} ms`)),
        READINESS_DEADLINE_MS,
      );
    });
    try {
      await Promise.race([this.ready(), deadline]);
      return { status: 'ok' };
    } catch (error) {
      logger('operator').warn({ reason: String(error) }, 'not ready');
      throw new ApiError('unavailable', 'Not ready.');
    } finally {
      clearTimeout(timer);
    }
  }

  @Get('metrics')
  async metrics(@Res() reply: FastifyReply): Promise<void> {
    const text = await metrics.metrics();
    await reply.type(metrics.contentType).send(text);
  }
}
