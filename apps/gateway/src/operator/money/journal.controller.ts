import { Controller, Get, HttpCode, Post, Query, Req, UseGuards } from '@nestjs/common';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../../http/api-error';
import { readJsonObject } from '../../http/json-body';
import { bodyCheck, describe, queryCheck } from '../../http/validate';
import { OPERATOR_PREFIX } from '../prefix';
import { JournalCompare, JournalHeadsQuery } from '../schemas';
import { SecretGuard } from '../port/secret-guard';

const checkQuery = queryCheck(JournalHeadsQuery);
const checkBody = bodyCheck(JournalCompare, (error) => new ApiError('invalid_parameter', describe(error)));

/** Heads of the journals. An operator keeps them and compares them with the journal later. */
@Controller(`${OPERATOR_PREFIX}/journal`)
@UseGuards(SecretGuard)
export class JournalController {
  constructor(private readonly services: ServiceClient) {}

  @Get('heads')
  heads(@Query() query: unknown) {
    return this.services.request('billing.journal.heads', checkQuery(query));
  }

  @Post('compare')
  @HttpCode(200)
  async compare(@Req() request: FastifyRequest) {
    const { heads } = checkBody(readJsonObject(request));
    return { data: await this.services.request('billing.journal.compare', { heads }) };
  }
}
