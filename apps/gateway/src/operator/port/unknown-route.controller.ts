import { All, Controller, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../../http/api-error';
import { allowedMethods } from '../../openapi/route-table';
import { OPERATOR_ROUTES } from '../routes';

/** Answers every route that no other controller binds. */
@Controller()
export class OperatorUnknownRouteController {
  @All('*')
  refuse(@Req() request: FastifyRequest): never {
    throw unknownRoute(request.url);
  }
}

/** 405 if the path is known, otherwise 404. */
export function unknownRoute(url: string): ApiError {
  const methods = allowedMethods(OPERATOR_ROUTES, url.split('?', 1)[0]!);
  return methods !== null
    ? new ApiError('method_not_allowed', undefined, { allow: methods })
    : new ApiError('not_found', 'No endpoint has this path. See /_operator/v1/openapi.yaml.');
}
