import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { requestIdFrom } from '@tollgate/contracts';
import { MessagesServer } from '@tollgate/messaging/nest';
import { ClientAddresses } from '@tollgate/runtime';
import { query } from '@tollgate/postgres';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:http';
import { OperatorLinks } from './access/operator-links';
import { ApiAddresses } from './api/api-addresses';
import { LiveStreams } from './api/live/live-streams';
import { ConsoleModule, type ConsoleServices } from './console.module';
import { ConsoleDataSource } from './database';
import type { ConsoleOptions } from './options';
import { SignIn } from './sign-in/sign-in';
import { MAX_BODY_BYTES } from './http/body';
import { sendError } from './http/envelope';
import { ConsoleError } from './http/errors';
import { Pages } from './http/pages';
import { securityHeaders } from './http/security-headers';
import { refuseNul } from './http/unstorable';

export const CONSOLE_PREFIX = '/console';

/** The running console. */
export interface ConsoleApp {
  /** Answers every request below CONSOLE_PREFIX. */
  handle: RequestListener;
  /**
   * Called once, when the server listens. `publicOrigin`: where browsers reach it. `apiOrigin`: where programs reach
   * both APIs. `ownApiOrigin`: where this process does.
   */
  serveAt(publicOrigin: string, apiOrigin: string, ownApiOrigin: string): Promise<void>;
  /**
   * A link that makes the first operator, who also owns the tenant, if there is one. It works once, for ten minutes.
   * Null if there is an operator.
   */
  firstOperatorLink(tenantId: string | null): Promise<string | null>;
  /** Rejects while the database does not answer. */
  check(): Promise<unknown>;
  /** Before the server waits for its last requests: a stream would never end. */
  endStreams(): void;
  close(): Promise<void>;
}

/**
 * The console: its pages and their backend, below CONSOLE_PREFIX. It does not listen: the caller passes requests on to
 * `handle`. Its requests to other services are answered when the caller has started `messages`. Needs the migrated
 * schema.
 */
export async function createConsoleApp(services: ConsoleServices, options: ConsoleOptions): Promise<ConsoleApp> {
  const adapter = consoleAdapter(options.trustedProxies);
  const fastify = adapter.getInstance();
  const app = await NestFactory.create<NestFastifyApplication>(ConsoleModule.register(services, options), adapter, {
    logger: false,
    abortOnError: false,
    bodyParser: false,
  });
  const signIn = app.get(SignIn);
  const pages = new Pages();
  fastify.addHook('onRequest', (request, reply, done) => {
    reply.headers({ 'x-request-id': request.id, 'cache-control': 'no-store', ...securityHeaders(null) });
    refuseNul(request);
    done();
  });
  fastify.get(CONSOLE_PREFIX, (request, reply) => pages.send(request, reply));
  fastify.get(`${CONSOLE_PREFIX}/*`, (request, reply) => pages.send(request, reply));
  app.connectMicroservice({ strategy: new MessagesServer(services.messages) });
  await app.init();
  await app.startAllMicroservices();
  await fastify.ready();
  return {
    handle: (request, response) => fastify.routing(request, response),
    async serveAt(publicOrigin, apiOrigin, ownApiOrigin) {
      Object.assign(app.get(ApiAddresses), { origin: apiOrigin, ownOrigin: ownApiOrigin });
      await signIn.serveAt(publicOrigin);
    },
    firstOperatorLink: (tenantId) => app.get(OperatorLinks).first(tenantId),
    check: () => query(app.get(ConsoleDataSource), 'SELECT 1'),
    endStreams: () => app.get(LiveStreams).close(),
    close: () => app.close(),
  };
}

/** Its server is never started: requests come through `handle`. */
function consoleAdapter(trustedProxies: string | undefined): FastifyAdapter {
  const adapter = new PlainAdapter({
    bodyLimit: MAX_BODY_BYTES,
    serverFactory: (handler: RequestListener) => createServer(handler),
    requestIdHeader: false,
    genReqId: ({ headers }: { headers: Record<string, unknown> }) => requestIdFrom(headers['x-request-id']),
    frameworkErrors: (error: Error, _request: FastifyRequest, reply: FastifyReply) => sendError(error, reply),
  });
  const fastify = adapter.getInstance();
  // It limits tries and is recorded in the audit log.
  fastify.addHook('onRequest', new ClientAddresses(trustedProxies).setIp);
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  fastify.setErrorHandler((error, _request, reply) => sendError(error, reply));
  fastify.setNotFoundHandler((_request, reply) => sendError(new ConsoleError('not_found'), reply));
  return adapter;
}

/** Keeps Nest from installing its own handlers for unknown routes and early errors. */
class PlainAdapter extends FastifyAdapter {
  override setNotFoundHandler(): ReturnType<FastifyAdapter['setNotFoundHandler']> {
    return this.getInstance();
  }

  override setErrorHandler(): ReturnType<FastifyAdapter['setErrorHandler']> {
    return this.getInstance();
  }
}
