import { Controller, Get, Req, Res } from '@nestjs/common';
import { answerProbe, Health, type ProbePath } from '@tollgate/runtime';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** For Prometheus and the platform; without the secret, as the port is not public. The deployables serve the same on a port of their own. */
@Controller()
export class ProbesController {
  constructor(private readonly health: Health) {}

  @Get(['livez', 'readyz', 'metrics'])
  async probe(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const { status, type, body } = await answerProbe(request.routeOptions.url as ProbePath, this.health);
    await reply.status(status).type(type).send(body);
  }
}
