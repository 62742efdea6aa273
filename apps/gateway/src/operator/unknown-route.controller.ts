import { All, Controller, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../http/api-error';
import { allowedMethods } from '../openapi/route-table';
import { OPERATOR_ROUTES } from './routes';

/** Answers every route that no other controller binds: 405 if the path is known, otherwise 404. */
@Controller()
export class OperatorUnknownRouteController {
  @All('*')
  refuse(@Req() request: FastifyRequest): never {
    const methods = allowedMethods(OPERATOR_ROUTES, request.url.split('?', 1)[0]!);
    if (methods !== null) throw new ApiError('method_not_allowed', undefined, { allow: methods });
    throw new ApiError('not_found', 'No such endpoint.');
  }
}
