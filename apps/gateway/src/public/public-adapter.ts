import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ClientAddresses } from '@tollgate/runtime';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RequestListener, Server } from 'node:http';
import { publicConnections } from '../accept/descriptors';
import { acceptingServer } from '../accept/server';
import { requestIdOf } from '../http/request-id';
import { earlyEnvelope } from './early-envelope';
import type { PublicHooks } from './public-hooks';
import { isBelow } from './url-prefix';

/** For the head and body of a request to arrive. Its answer may take longer. */
const REQUEST_TIMEOUT_MS = 120_000;
/** More than node:http accepts as a whole head. */
const MAX_PARAM_CHARS = 16_384;

export interface PublicAppOptions {
  /** Default: derived from the limit of open files. */
  maxConnections?: number | undefined;
  /** Proxies whose `X-Forwarded-For` and PROXY header are believed. */
  trustedProxies?: string | undefined;
  /** Another application on the same port. */
  mounted?: Mounted | undefined;
}

/** An application that answers every request at and below a path. */
export interface Mounted {
  /** Without a slash at its end. */
  prefix: string;
  handle: RequestListener;
}

/**
 * Keeps Nest from installing its own handlers: `PublicHooks` answers unknown routes and early errors in the envelope of
 * their surface.
 */
class PublicAdapter extends FastifyAdapter {
  override setNotFoundHandler(): ReturnType<FastifyAdapter['setNotFoundHandler']> {
    return this.getInstance();
  }

  override setErrorHandler(): ReturnType<FastifyAdapter['setErrorHandler']> {
    return this.getInstance();
  }
}

/** @param hooks called for each request. Nest makes them after the adapter. */
export function publicAdapter(options: PublicAppOptions, hooks: () => PublicHooks): FastifyAdapter {
  const addresses = new ClientAddresses(options.trustedProxies);
  const adapter = new PublicAdapter({
    serverFactory: (handler: RequestListener) => publicServer(handler, options, addresses, hooks),
    forceCloseConnections: 'idle',
    requestIdHeader: false,
    genReqId: requestIdOf,
    return503OnClosing: false,
    // An unknown id of any length is a 404. node:http limits the size of the head.
    routerOptions: { maxParamLength: MAX_PARAM_CHARS },
    // acceptingServer handles client errors itself.
    clientErrorHandler: () => {},
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      hooks().sendEarlyError(error, request, reply),
  });
  // The audit log records it.
  adapter.getInstance().addHook('onRequest', addresses.setIp);
  return adapter;
}

/** The server below Fastify: some requests pass Fastify by. */
function publicServer(
  handler: RequestListener,
  { maxConnections, mounted, trustedProxies }: PublicAppOptions,
  addresses: ClientAddresses,
  hooks: () => PublicHooks,
): Server {
  const listener: RequestListener = (request, response) => {
    if (mounted && isBelow(mounted.prefix, request.url!)) return hooks().passTo(mounted.handle, request, response);
    // A server that is closing adds `Connection: close`, which is Fastify's work.
    if (!server.listening || !hooks().takeUsual(request, response)) handler(request, response);
  };
  const server = acceptingServer(listener, {
    port: 'public',
    maxConnections: publicConnections(maxConnections),
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    envelope: earlyEnvelope,
    ...(trustedProxies !== undefined && { isProxy: (address) => addresses.isProxy(address) }),
  });
  return server;
}
