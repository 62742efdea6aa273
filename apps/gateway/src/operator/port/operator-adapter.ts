import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ClientAddresses } from '@tollgate/runtime';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RequestListener } from 'node:http';
import { MAX_OPERATOR_CONNECTIONS } from '../../accept/descriptors';
import type { EarlyRefusal } from '../../accept/raw-answer';
import { closeIfUnread, leaveBodies } from '../../accept/receive-body';
import { acceptingServer } from '../../accept/server';
import { ApiError } from '../../http/api-error';
import { envelopeOf, sendError } from '../../http/envelope';
import { OWN_ID_HEADER, ownIdOf, requestIdOf } from '../../http/request-id';
import { isAllowedHost } from './allowed-hosts';
import { OPERATOR_ERRORS } from '../errors';
import { unknownRoute } from './unknown-route.controller';

const OPEN_PROBES: ReadonlySet<string> = new Set(['/livez', '/readyz']);
/** For the head and body of a request to arrive. */
const REQUEST_TIMEOUT_MS = 60_000;
/** More than node:http accepts as a whole head. */
const MAX_PARAM_CHARS = 16_384;

export interface OperatorPortOptions {
  /** Host names that callers may use besides addresses and localhost. */
  hosts?: readonly string[];
  /** Proxies whose `X-Forwarded-For` is believed. */
  trustedProxies?: string | undefined;
}

/** The server of the operator port, with what happens to every request before its route. */
export function operatorAdapter({ hosts = [], trustedProxies }: OperatorPortOptions): FastifyAdapter {
  const adapter = new FastifyAdapter({
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
  // It limits wrong secrets and is recorded in the audit log.
  adapter.getInstance().addHook('onRequest', new ClientAddresses(trustedProxies).setIp);
  addHooks(adapter.getInstance(), hosts);
  return adapter;
}

function addHooks(server: FastifyInstance, hosts: readonly string[]): void {
  leaveBodies(server);
  server.addHook('onRequest', (request, reply, done) => {
    withIds(request, reply);
    // A platform calls the probes under its own host names, and they reveal nothing.
    const isAllowed = isAllowedHost(request.headers.host, hosts) || OPEN_PROBES.has(request.url);
    if (isAllowed && !request.is404) return done();
    const error = isAllowed ? unknownRoute(request.url) : new ApiError('misdirected_request');
    sendError(OPERATOR_ERRORS, 'operator', error, reply);
  });
  server.addHook('onSend', (request, reply, payload, done) => {
    closeIfUnread(request, reply);
    done(null, payload);
  });
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
