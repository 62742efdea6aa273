import { Controller, HttpCode, Post, Req, UseGuards } from '@nestjs/common';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../../http/api-error';
import { readJsonObject } from '../../http/json-body';
import { bodyCheck, describe } from '../../http/validate';
import { ConfigCheck } from './config-schemas';
import { OPERATOR_PREFIX } from '../prefix';
import { SecretGuard } from '../port/secret-guard';

const checkBody = bodyCheck(ConfigCheck, (error) => new ApiError('invalid_parameter', describe(error)));

/** Whether the services would accept a configuration. Checks that need only its file are not repeated. */
@Controller(`${OPERATOR_PREFIX}/config`)
@UseGuards(SecretGuard)
export class ConfigController {
  constructor(private readonly services: ServiceClient) {}

  @Post('check')
  @HttpCode(200)
  async check(@Req() request: FastifyRequest) {
    const { currency, plans } = checkBody(readJsonObject(request));
    const [keys, books] = await Promise.all([
      this.services.request('auth.config.check', { plans }),
      this.services.request('billing.config.check', { currency }),
    ]);
    return { data: { problems: [...keys.problems, ...books.problems] } };
  }
}
