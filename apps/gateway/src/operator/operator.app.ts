import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { EnvelopeFilter } from '../http/envelope';
import { OPERATOR_ERRORS } from './errors';
import { operatorAdapter, type OperatorPortOptions } from './port/operator-adapter';
import { type OperatorAccess, OperatorModule, type OperatorServices } from './operator.module';

/**
 * The operator API (`/_operator/v1`) with /metrics, /livez and /readyz: a separate application on its own port. It is
 * initialised but does not listen yet. The caller chooses address and port (127.0.0.1 by default) and closes it.
 */
export async function createOperatorApp(
  services: OperatorServices,
  options: OperatorAccess & OperatorPortOptions,
): Promise<NestFastifyApplication> {
  const app = await NestFactory.create<NestFastifyApplication>(
    OperatorModule.register(services, options),
    operatorAdapter(options),
    { logger: false, abortOnError: false, bodyParser: false },
  );
  app.useGlobalFilters(new EnvelopeFilter(OPERATOR_ERRORS, 'operator'));
  await app.init();
  return app;
}
