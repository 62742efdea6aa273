import { Controller, Get, Inject, Optional, Req, Res } from '@nestjs/common';
import { answerProbe, Health, probeCaller, type ProbePath } from '@tollgate/runtime';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** What /metrics wants as a bearer, and /readyz for more than its status; absent: nothing. */
export const METRICS_TOKEN = Symbol('metrics token');

/**
 * For Prometheus and the platform; without the secret, as the port is not public. The deployables serve the same on a
 * port of their own.
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
