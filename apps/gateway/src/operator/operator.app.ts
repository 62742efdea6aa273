import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { newId } from '@tollgate/contracts';
import type { Messages } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource, Health } from '@tollgate/runtime';
import { MAX_OPERATOR_CONNECTIONS } from '../accept/descriptors';
import type { EarlyRefusal } from '../accept/raw-answer';
import { acceptingServer, continueIfOwed } from '../accept/server';
import { ApiError } from '../http/api-error';
import { EnvelopeFilter, sendError } from '../http/envelope';
import { MAX_JSON_BODY_BYTES } from '../http/json-body';
import { requestIdOf } from '../http/request-id';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RequestListener } from 'node:http';
import { isAllowedHost } from './allowed-hosts';
import { AccessController } from './access.controller';
import { AuditController } from './audit.controller';
import { BudgetController } from './budget.controller';
import { CreditController } from './credit.controller';
import { OPERATOR_ERRORS } from './errors';
import { InvoicesController } from './invoices.controller';
import { OperatorKeysController } from './keys.controller';
import { JournalController } from './journal.controller';
import { OpenApiController } from './open-api.controller';
import { METRICS_TOKEN, ProbesController } from './probes.controller';
import { ReconcileController } from './reconcile.controller';
import { OPERATOR_SECRET, SecretGuard } from './secret-guard';
import { TenantLookup } from './tenant-lookup';
import { TenantsController } from './tenants.controller';
import { OperatorTokensController } from './tokens.controller';
import { OperatorUsageController } from './usage.controller';
import { UsageExportController } from './usage-export.controller';
import { OperatorUnknownRouteController } from './unknown-route.controller';

export interface OperatorOptions {
  /** The bearer token that callers must send. */
  secret: string;
  /** Answers /readyz. */
  health: Health;
  /** Host names that callers may use besides addresses and localhost. */
  hosts?: readonly string[];
  /** The bearer token that /metrics needs. Absent: none. */
  metricsToken?: string | undefined;
}

const OPEN_PROBES: ReadonlySet<string> = new Set(['/livez', '/readyz']);
/** For the head and body of a request to arrive. */
const REQUEST_TIMEOUT_MS = 60_000;

@Module({
  controllers: [
    TenantsController,
    CreditController,
    BudgetController,
    OperatorKeysController,
    OperatorTokensController,
    OperatorUsageController,
    UsageExportController,
    InvoicesController,
    ReconcileController,
    JournalController,
    AccessController,
    AuditController,
    OpenApiController,
    ProbesController,
    OperatorUnknownRouteController,
  ],
})
export class OperatorModule {}

/**
 * The operator API (`/_operator/v1`) with /metrics, /livez and /readyz: a separate application on its own port. It is
 * initialised but does not listen yet. The caller chooses address and port (127.0.0.1 by default) and closes it.
 */
export async function createOperatorApp(
  { messages, config }: { messages: Messages; config: ConfigSource },
  { secret, health, hosts = [], metricsToken }: OperatorOptions,
): Promise<NestFastifyApplication> {
  const adapter = new FastifyAdapter({
    bodyLimit: MAX_JSON_BODY_BYTES,
    forceCloseConnections: 'idle',
    serverFactory: (handler: RequestListener) =>
      acceptingServer(handler, {
        port: 'operator',
        maxConnections: MAX_OPERATOR_CONNECTIONS,
        requestTimeoutMs: REQUEST_TIMEOUT_MS,
        envelope: earlyEnvelope,
      }),
    // acceptingServer handles client errors itself.
    clientErrorHandler: () => {},
    // A path that cannot be decoded never reaches a route.
    frameworkErrors: (error: Error, _request: FastifyRequest, reply: FastifyReply) =>
      sendError(OPERATOR_ERRORS, 'operator', error, reply.header('x-request-id', newId('req'))),
  });
  const fastify = adapter.getInstance();
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  fastify.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', requestIdOf(request));
    // A platform calls the probes under its own host names, and they reveal nothing.
    if (isAllowedHost(request.headers.host, hosts) || OPEN_PROBES.has(request.url)) {
      continueIfOwed(request.raw, reply.raw);
      return done();
    }
    sendError(OPERATOR_ERRORS, 'operator', new ApiError('misdirected_request'), reply);
  });
  const app = await NestFactory.create<NestFastifyApplication>(
    {
      module: OperatorModule,
      providers: [
        { provide: ServiceClient, useValue: new ServiceClient(messages) },
        { provide: ConfigSource, useValue: config },
        { provide: OPERATOR_SECRET, useValue: secret },
        { provide: Health, useValue: health },
        ...(metricsToken === undefined ? [] : [{ provide: METRICS_TOKEN, useValue: metricsToken }]),
        SecretGuard,
        TenantLookup,
      ],
    },
    adapter,
    { logger: false, abortOnError: false, bodyParser: false },
  );
  app.useGlobalFilters(new EnvelopeFilter(OPERATOR_ERRORS, 'operator'));
  await app.init();
  return app;
}

/** The envelope for requests that reach no route. */
function earlyEnvelope({ status, message }: EarlyRefusal): string {
  const code: keyof typeof OPERATOR_ERRORS = status === 503 ? 'unavailable' : 'invalid_request';
  return JSON.stringify({ error: { code, message } });
}
