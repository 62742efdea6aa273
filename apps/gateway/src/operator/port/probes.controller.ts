import { Controller, Get, Req, Res } from '@nestjs/common';
import { answerProbe, Health, ProbeAccess, type ProbePath } from '@tollgate/runtime';
import type { FastifyReply, FastifyRequest } from 'fastify';

/**
 * Probes and metrics for Prometheus and the platform. They need no operator secret, because the port is not public.
 * Services without this port serve the same on their own health port.
 */
@Controller()
export class ProbesController {
  constructor(
    private readonly health: Health,
    private readonly access: ProbeAccess,
  ) {}

  @Get(['livez', 'readyz', 'metrics'])
  async probe(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const caller = this.access.callerOf(request.raw);
    const path = request.routeOptions.url as ProbePath;
    const { status, type, body, headers = {} } = await answerProbe(path, this.health, caller);
    await reply.status(status).headers(headers).type(type).send(body);
  }
}
