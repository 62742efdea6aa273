import { All, Controller, Req, UseFilters } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { EnvelopeFilter } from './envelope';
import { MANAGEMENT_ERRORS, managementError } from './errors';
import { allowedMethods, MANAGEMENT_PREFIX, MANAGEMENT_ROUTES } from './routes';

/** Whatever under the prefix no other controller took: 405 where the path is known, 404 elsewhere, in the surface's own envelope. */
@Controller(MANAGEMENT_PREFIX)
@UseFilters(new EnvelopeFilter(MANAGEMENT_ERRORS, 'management'))
export class UnknownRouteController {
  @All(['', '*'])
  refuse(@Req() request: FastifyRequest): never {
    const path = request.url.split('?', 1)[0]!.slice(MANAGEMENT_PREFIX.length);
    const methods = allowedMethods(MANAGEMENT_ROUTES, path);
    if (methods) throw managementError('method_not_allowed', undefined, { allow: methods.join(', ') });
    throw managementError('not_found', 'No such endpoint.');
  }
}
