import { All, Controller, Req, UseFilters } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { ApiError } from '../http/api-error';
import { EnvelopeFilter } from '../http/envelope';
import { MANAGEMENT_ERRORS, managementError } from './errors';
import { allowedMethods } from '../openapi/route-table';
import { MANAGEMENT_ROOT } from './prefix';
import { MANAGEMENT_ROUTES } from './routes';

/** Answers every route under the prefix that no other controller binds. */
@Controller(MANAGEMENT_ROOT)
@UseFilters(new EnvelopeFilter(MANAGEMENT_ERRORS, 'management'))
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
    : managementError('not_found', 'No such endpoint.');
}
