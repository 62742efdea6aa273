import { Controller, Get, Inject, Optional, Req, Res } from '@nestjs/common';
import { answerProbe, Health, probeCaller, type ProbePath } from '@tollgate/runtime';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** The bearer token that /metrics needs, and /readyz for details. Without it, none is needed. */
export const METRICS_TOKEN = Symbol('metrics token');

/**
 * Probes and metrics for Prometheus and the platform. They need no operator secret, because the port is not public.
 * Services without this port serve the same on their own health port.
 */
@Controller()
export class ProbesController {
  constructor(
    private readonly health: Health,
    @Optional() @Inject(METRICS_TOKEN) private readonly metricsToken?: string,
  ) {}

  @Get(['livez', 'readyz', 'metrics'])
  async probe(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const caller = probeCaller(request.raw, this.metricsToken);
    const path = request.routeOptions.url as ProbePath;
    const { status, type, body, headers = {} } = await answerProbe(path, this.health, caller);
    await reply.status(status).headers(headers).type(type).send(body);
  }
}
