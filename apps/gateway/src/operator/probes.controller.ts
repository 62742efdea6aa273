import { Controller, Get, Inject, Req, Res } from '@nestjs/common';
import { answerProbe, Health, probeCaller, type ProbePath } from '@tollgate/runtime';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** The bearer tokens of which /metrics needs one, and /readyz for details. Without any, none is needed. */
export const METRICS_TOKENS = Symbol('metrics tokens');

/**
 * Probes and metrics for Prometheus and the platform. They need no operator secret, because the port is not public.
 * Services without this port serve the same on their own health port.
 */
@Controller()
export class ProbesController {
  constructor(
    private readonly health: Health,
    @Inject(METRICS_TOKENS) private readonly metricsTokens: readonly string[],
  ) {}

  @Get(['livez', 'readyz', 'metrics'])
  async probe(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const caller = probeCaller(request.raw, this.metricsTokens);
    const path = request.routeOptions.url as ProbePath;
    const { status, type, body, headers = {} } = await answerProbe(path, this.health, caller);
    await reply.status(status).headers(headers).type(type).send(body);
  }
}
