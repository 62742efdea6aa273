import { All, Controller, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../http/api-error';
import { allowedMethods } from '../openapi/route-table';
import { OPERATOR_ROUTES } from './routes';

/** Whatever no other controller took: 405 where the path is known, 404 elsewhere. */
@Controller()
export class OperatorUnknownRouteController {
  @All('*')
  refuse(@Req() request: FastifyRequest): never {
    const methods = allowedMethods(OPERATOR_ROUTES, request.url.split('?', 1)[0]!);
    if (methods !== null) throw new ApiError('method_not_allowed', undefined, { allow: methods });
    throw new ApiError('not_found', 'No such endpoint.');
  }
}
