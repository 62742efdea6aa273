import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AllowInTenant, AllowOperator } from '../../access/allow';
import { LiveStreams } from './live-streams';
import { Overviews } from '../usage/overviews';
import { FleetStates } from '../operator/fleet-states';

/** How many tokens the page of tokens shows. */
const TOKENS = 50;

/** What pages show of changing numbers. Each has the answer of a route of the same access, again at each change. */
@Controller('console/api')
export class LiveController {
  constructor(
    private readonly services: ServiceClient,
    private readonly streams: LiveStreams,
    private readonly overviews: Overviews,
    private readonly fleet: FleetStates,
  ) {}

  @Get('tenants/:tenantId/live/overview')
  @AllowInTenant('usage.read')
  overview(@Param('tenantId') tenantId: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    const read = () => this.overviews.of(tenantId);
    const name = `overview ${tenantId}`;
    return this.streams.send({ request, reply }, { access: { tenant: 'usage.read' }, name, read });
  }

  @Get('tenants/:tenantId/live/tokens')
  @AllowInTenant('tokens.read')
  tokens(@Param('tenantId') tenantId: string, @Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    const read = () => this.services.request('auth.tokens.list', { tenantId, limit: TOKENS });
    const name = `tokens ${tenantId}`;
    return this.streams.send({ request, reply }, { access: { tenant: 'tokens.read' }, name, read });
  }

  @Get('operator/live/fleet')
  @AllowOperator('books.check')
  fleetState(@Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    const read = () => this.fleet.now();
    return this.streams.send({ request, reply }, { access: { operator: 'books.check' }, name: 'fleet', read });
  }
}
