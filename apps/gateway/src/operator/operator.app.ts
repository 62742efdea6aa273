import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Messages } from '@tollgate/messaging';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ClientAddresses, ConfigSource, Health, ProbeAccess } from '@tollgate/runtime';
import { MAX_OPERATOR_CONNECTIONS } from '../accept/descriptors';
import type { EarlyRefusal } from '../accept/raw-answer';
import { closeIfUnread } from '../accept/receive-body';
import { acceptingServer } from '../accept/server';
import { ApiError } from '../http/api-error';
import { EnvelopeFilter, envelopeOf, sendError } from '../http/envelope';
import { OWN_ID_HEADER, ownIdOf, requestIdOf } from '../http/request-id';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RequestListener } from 'node:http';
import { isAllowedHost } from './allowed-hosts';
import { AccessController } from './access.controller';
import { AuditController } from './audit.controller';
import { BackendsController } from './backends.controller';
import { BudgetController } from './budget.controller';
import { ConfigController } from './config.controller';
import { CreditController } from './credit.controller';
import { ExplainController, LOOKS, type Looks } from './explain.controller';
import { OPERATOR_ERRORS } from './errors';
import { OperatorInvitationsController } from './invitations.controller';
import { InvoicesController } from './invoices.controller';
import { OperatorKeysController } from './keys.controller';
import { JournalController } from './journal.controller';
import { OpenApiController } from './open-api.controller';
import { ProbesController } from './probes.controller';
import { ReconcileController } from './reconcile.controller';
import { OPERATOR_SECRETS, SecretGuard } from './secret-guard';
import { TenantLookup } from './tenant-lookup';
import { TenantsController } from './tenants.controller';
import { OperatorTokensController } from './tokens.controller';
import { OperatorUsageController } from './usage.controller';
import { UsageExportController } from './usage-export.controller';
import { OperatorUnknownRouteController, unknownRoute } from './unknown-route.controller';

export interface OperatorOptions {
  /** The bearer tokens of which callers must send one: the secret, and the former one while callers change to it. */
  secrets: readonly string[];
  /** Answers /readyz. */
  health: Health;
  /** Host names that callers may use besides addresses and localhost. */
  hosts?: readonly string[];
  /** The bearer tokens of which /metrics needs one. None: it is open. */
  metricsTokens?: readonly string[];
  /** Proxies whose `X-Forwarded-For` is believed. */
  trustedProxies?: string | undefined;
}

const OPEN_PROBES: ReadonlySet<string> = new Set(['/livez', '/readyz']);
/** For the head and body of a request to arrive. */
const REQUEST_TIMEOUT_MS = 60_000;
/** More than node:http accepts as a whole head. */
const MAX_PARAM_CHARS = 16_384;

@Module({
  controllers: [
    TenantsController,
    ConfigController,
    CreditController,
    BudgetController,
    OperatorKeysController,
    OperatorTokensController,
    OperatorUsageController,
    ExplainController,
    UsageExportController,
    InvoicesController,
    ReconcileController,
    BackendsController,
    JournalController,
    AccessController,
    OperatorInvitationsController,
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
  { messages, config, admission }: { messages: Messages; config: ConfigSource; admission: Looks },
  { secrets, health, hosts = [], metricsTokens = [], trustedProxies }: OperatorOptions,
): Promise<NestFastifyApplication> {
  const addresses = new ClientAddresses(trustedProxies);
  const adapter = new FastifyAdapter({
    // For `request.ip`, which limits wrong secrets and is recorded in the audit log.
    trustProxy: (address: string) => addresses.isProxy(address),
    forceCloseConnections: 'idle',
    // Fastify's own answer while it closes is not in our envelope.
    return503OnClosing: false,
    serverFactory: (handler: RequestListener) =>
      acceptingServer(handler, {
        port: 'operator',
        maxConnections: MAX_OPERATOR_CONNECTIONS,
        requestTimeoutMs: REQUEST_TIMEOUT_MS,
        envelope: earlyEnvelope,
      }),
    // An unknown id of any length is a 404. node:http limits the size of the head.
    routerOptions: { maxParamLength: MAX_PARAM_CHARS },
    // acceptingServer handles client errors itself.
    clientErrorHandler: () => {},
    // A path that cannot be decoded never reaches a route.
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      sendError(OPERATOR_ERRORS, 'operator', error, withIds(request, reply)),
  });
  const fastify = adapter.getInstance();
  fastify.removeAllContentTypeParsers();
  // A guard reads the body, once the caller is admitted.
  fastify.addContentTypeParser('*', (_request, _payload, done) => done(null));
  fastify.addHook('onRequest', (request, reply, done) => {
    withIds(request, reply);
    // A platform calls the probes under its own host names, and they reveal nothing.
    const isAllowed = isAllowedHost(request.headers.host, hosts) || OPEN_PROBES.has(request.url);
    // No route has another method, and Fastify itself answers QUERY without a body.
    const isUnknown = request.is404 || request.method === 'QUERY';
    if (isAllowed && !isUnknown) return done();
    const error = isAllowed ? unknownRoute(request.url) : new ApiError('misdirected_request');
    sendError(OPERATOR_ERRORS, 'operator', error, reply);
  });
  fastify.addHook('onSend', (request, reply, payload, done) => {
    closeIfUnread(request, reply);
    done(null, payload);
  });
  const app = await NestFactory.create<NestFastifyApplication>(
    {
      module: OperatorModule,
      providers: [
        { provide: ServiceClient, useValue: new ServiceClient(messages) },
        { provide: ConfigSource, useValue: config },
        { provide: LOOKS, useValue: admission },
        { provide: OPERATOR_SECRETS, useValue: secrets },
        { provide: Health, useValue: health },
        { provide: ProbeAccess, useValue: new ProbeAccess(metricsTokens) },
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

function withIds({ raw }: FastifyRequest, reply: FastifyReply): FastifyReply {
  const requestId = requestIdOf(raw);
  return reply.headers({ 'x-request-id': requestId, [OWN_ID_HEADER]: ownIdOf(raw, requestId) });
}

/** The envelope for requests that reach no route. */
function earlyEnvelope({ status, message }: EarlyRefusal): string {
  const code: keyof typeof OPERATOR_ERRORS = status === 503 ? 'unavailable' : 'invalid_request';
  return envelopeOf(code, message);
}
