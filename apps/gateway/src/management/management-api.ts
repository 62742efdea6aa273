import { UseFilters } from '@nestjs/common';
import { EnvelopeFilter } from '../http/envelope';
import { MANAGEMENT_ERRORS } from './errors';

/** A controller of the management API, whose errors are answered from its table. */
export const ManagementApi = (): ClassDecorator => UseFilters(new EnvelopeFilter(MANAGEMENT_ERRORS, 'management'));
