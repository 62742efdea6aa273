import { All, Controller, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { ApiError } from '../http/api-error';
import { managementError } from './errors';
import { allowedMethods } from '../openapi/route-table';
import { ManagementApi } from './management-api';
import { MANAGEMENT_ROOT } from './prefix';
import { MANAGEMENT_ROUTES } from './routes';

/** Answers every route under the prefix that no other controller binds. */
@Controller(MANAGEMENT_ROOT)
@ManagementApi()
export class UnknownRouteController {
  @All(['', '*'])
  refuse(@Req() request: FastifyRequest): never {
    throw unknownRoute(request.url);
  }
}

/** 405 if the path is known, otherwise 404. */
export function unknownRoute(url: string): ApiError {
  const methods = allowedMethods(MANAGEMENT_ROUTES, url.split('?', 1)[0]!);
  return methods !== null
    ? managementError('method_not_allowed', undefined, { allow: methods })
    : managementError('not_found', 'No endpoint has this path. See /docs.');
}
