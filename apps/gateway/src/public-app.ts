import type { DynamicModule, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Messages } from '@tollgate/messaging';
import { MessagesServer } from '@tollgate/messaging/nest';
import { ClientAddresses, logger, settlesWithin } from '@tollgate/runtime';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RequestListener, ServerResponse } from 'node:http';
import { KeyActivity } from './activity/key-activity';
import { publicConnections } from './accept/descriptors';
import type { EarlyRefusal } from './accept/raw-answer';
import { closeIfUnread } from './accept/receive-body';
import { acceptingServer, continueIfOwed } from './accept/server';
import { DOCS_PATHS } from './openapi/docs.module';
import { InferenceError } from './inference-errors';
import { GATEWAY_OPTIONS, type GatewayOptions } from './options';
import { InFlight } from './inference/in-flight';
import { KeptConnections } from './inference/kept-connections';
import { Pipeline } from './inference/pipeline';
import { Settlements } from './settle/settlement';
import { bindInference, inferenceShortcut, refuseEarly, refuseUnknownRoute } from './inference/bind-routes';
import { loggedPath } from './logged-path';
import { envelopeOf, sendError } from './http/envelope';
import { OWN_ID_HEADER, ownIdOf, requestIdOf } from './http/request-id';
import { MANAGEMENT_ERRORS } from './management/errors';
import { MANAGEMENT_ROOT } from './management/prefix';
import { unknownRoute } from './management/unknown-route.controller';

/** For the head and body of a request to arrive. Its answer may take longer. */
const REQUEST_TIMEOUT_MS = 120_000;
/** For settling and answering requests that are cut off. */
const CUT_OFF_TIMEOUT_MS = 2_000;
const FLUSH_TIMEOUT_MS = 2_000;
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
 * The public port: the inference routes on the bare server, the management API and the docs as Nest controllers. It is
 * initialised but does not listen yet. The module's message patterns are already answered.
 * @param module the program's root module; it imports a GatewayModule
 */
export async function createPublicApp(
  module: Type | DynamicModule,
  options: PublicAppOptions = {},
): Promise<NestFastifyApplication> {
  const maxConnections = publicConnections(options.maxConnections);
  let shortcut: ReturnType<typeof inferenceShortcut> | null = null;
  const addresses = new ClientAddresses(options.trustedProxies);
  const adapter = new PublicAdapter({
    // For `request.ip`, which the audit log records.
    trustProxy: (address: string) => addresses.isProxy(address),
    serverFactory: (handler: RequestListener) => {
      const { mounted } = options;
      const listener: RequestListener = (request, response) => {
        if (mounted && isBelow(mounted.prefix, request.url!)) {
          if (inFlight().draining) response.setHeader('connection', 'close');
          continueIfOwed(request, response);
          countRunning(inFlight(), response);
          mounted.handle(request, response);
          return;
        }
        // A server that is closing adds `Connection: close`, which is Fastify's work.
        if (!http.listening || !shortcut?.(request, response)) handler(request, response);
      };
      const http = acceptingServer(listener, {
        port: 'public',
        maxConnections,
        requestTimeoutMs: REQUEST_TIMEOUT_MS,
        envelope: earlyEnvelope,
        ...(options.trustedProxies !== undefined && { isProxy: (address) => addresses.isProxy(address) }),
      });
      return http;
    },
    forceCloseConnections: 'idle',
    requestIdHeader: false,
    genReqId: requestIdOf,
    return503OnClosing: false,
    // An unknown id of any length is a 404. node:http limits the size of the head.
    routerOptions: { maxParamLength: MAX_PARAM_CHARS },
    // acceptingServer handles client errors itself.
    clientErrorHandler: () => {},
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) =>
      sendEarlyError(pipeline(), error, request, reply),
  });
  const server = adapter.getInstance();
  // Each surface reads the body itself, once the caller is known.
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('*', (_request, _payload, done) => done(null));
  server.setErrorHandler((error: Error, request, reply) => sendEarlyError(pipeline(), error, request, reply));
  // Only requests call this, and then `app` is assigned.
  const inFlight = (): InFlight => app.get(InFlight, { strict: false });
  const pipeline = (): Pipeline => app.get(Pipeline, { strict: false });
  server.addHook('onRequest', (request, reply, done) => {
    reply.headers({ 'x-request-id': request.id, [OWN_ID_HEADER]: ownIdOf(request.raw, request.id) });
    if (isManagement(request)) {
      if (inFlight().leaving) reply.header('connection', 'close');
      countRunning(inFlight(), reply.raw);
    }
    // Unknown routes are refused before a body is read.
    if (!request.is404 || isManagement(request)) return done();
    refuseRoute(pipeline(), request, reply);
  });
  server.addHook('onSend', (request, reply, payload, done) => {
    closeIfUnread(request, reply);
    done(null, payload);
  });
  const log = logger('gateway');
  // Requests are logged only at level debug: a line costs a quarter of the hot path's own work.
  if (log.isLevelEnabled('debug')) {
    server.addHook('onResponse', (request, reply, done) => {
      log.debug(
        {
          requestId: request.id,
          method: request.method,
          path: loggedPath(request.url),
          status: reply.raw.statusCode,
          ms: Math.round(reply.elapsedTime),
        },
        'answered',
      );
      done();
    });
  }
  server.setNotFoundHandler((request, reply) => {
    // Nest binds no route for this HTTP method.
    if (isManagement(request)) return sendError(MANAGEMENT_ERRORS, 'management', unknownRoute(request.url), reply);
    refuseRoute(pipeline(), request, reply);
  });
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    bodyParser: false,
    abortOnError: false,
    logger: false,
  });
  app.connectMicroservice({ strategy: new MessagesServer(app.get(Messages, { strict: false })) });
  const parts = {
    pipeline: pipeline(),
    inFlight: inFlight(),
    connections: app.get(KeptConnections, { strict: false }),
    activity: app.get(KeyActivity, { strict: false }),
    tracer: app.get<GatewayOptions>(GATEWAY_OPTIONS, { strict: false }).tracer ?? null,
  };
  parts.connections.watch(server.server);
  bindInference(server, parts);
  // At level debug, a hook of Fastify logs each request.
  if (!log.isLevelEnabled('debug')) shortcut = inferenceShortcut(parts);
  await app.init();
  await app.startAllMicroservices();
  await server.ready();
  return app;
}

/** Before `drain`, while requests are still accepted: each answer ends its connection from now on. */
export function leave(app: NestFastifyApplication): void {
  app.get(InFlight, { strict: false }).leaving = true;
}

/**
 * Refuses new inference requests, closes idle connections, and lets running requests finish to their last byte. False
 * when one took longer than `timeoutMs`.
 */
export function drain(app: NestFastifyApplication, timeoutMs: number): Promise<boolean> {
  const drained = app.get(InFlight, { strict: false }).drain(timeoutMs);
  app.get(KeptConnections, { strict: false }).closeIdle();
  return drained;
}

/**
 * Ends the requests that outlived the drain. Streams are settled at the output delivered and end with an error event
 * and `[DONE]`. Plain requests get a 503 and are not charged. Backends are stopped. Then closes all connections,
 * including the management API's, so that `app.close()` does not wait for them. False when a request was not settled
 * and answered within `timeoutMs` (its client does not read, or the store does not answer).
 */
export async function cutOff(app: NestFastifyApplication, timeoutMs = CUT_OFF_TIMEOUT_MS): Promise<boolean> {
  const ended = await app.get(InFlight, { strict: false }).cutOff(timeoutMs);
  app.getHttpServer().closeAllConnections();
  return ended;
}

/** Lets running requests finish for `timeoutMs`, then ends the others by `cutOff`. */
export async function endRequests(app: NestFastifyApplication, timeoutMs: number): Promise<void> {
  if (!(await drain(app, timeoutMs)))
    logger('gateway').warn('requests did not finish in time: they are ended and settled at the output delivered');
  await cutOff(app);
}

/**
 * Tries late settlements once more. Waits until the usage of all ended requests is published or left to the sweeper.
 * False when this took longer than `timeoutMs`.
 */
export async function flushUsage(app: NestFastifyApplication, timeoutMs = FLUSH_TIMEOUT_MS): Promise<boolean> {
  const flushed = app.get(Settlements, { strict: false }).flush();
  if (!(await settlesWithin(timeoutMs, flushed))) return false;
  // Rejects if the flush itself failed.
  await flushed;
  return true;
}

/**
 * Keeps Nest from installing its own handlers: this file answers unknown routes and early errors in the envelope of
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

/** A shutdown lets management requests finish too; they usually take milliseconds. */
function countRunning(inFlight: InFlight, response: ServerResponse): void {
  const running = { cutOff: () => void response.destroy() };
  inFlight.begin(running);
  response.once('close', () => inFlight.end(running));
}

function isBelow(prefix: string, url: string): boolean {
  return url.startsWith(prefix) && (url.length === prefix.length || '/?'.includes(url[prefix.length]!));
}

/** The management API answers every path below its root, also those without its version. */
function isManagement({ url }: { url: string }): boolean {
  return isBelow(MANAGEMENT_ROOT, url);
}

function refuseRoute(pipeline: Pipeline, request: FastifyRequest, reply: FastifyReply): void {
  reply.hijack();
  refuseUnknownRoute(pipeline, request.url, reply.raw, request.id, DOCS_PATHS);
}

/** Answers errors of Fastify itself: an unreadable path or media type, or a body that is too large. */
function sendEarlyError(
  pipeline: Pipeline,
  error: Error & { statusCode?: number },
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const status = error.statusCode ?? 500;
  if (isManagement(request)) {
    // An undecodable path is refused before the hook that sets the id.
    reply.headers({ 'x-request-id': request.id, [OWN_ID_HEADER]: ownIdOf(request.raw, request.id) });
    // Fastify itself refuses QUERY without a body.
    const shown = request.method === 'QUERY' ? unknownRoute(request.url) : error;
    return sendError(MANAGEMENT_ERRORS, 'management', shown, reply);
  }
  reply.hijack();
  if (status === 415) return refuseEarly(new InferenceError('unsupported_media_type'), reply.raw, request.id);
  if (status < 500) return refuseUnknownRoute(pipeline, request.url, reply.raw, request.id, DOCS_PATHS);
  logger('gateway').error({ requestId: request.id, err: error }, 'answered 500');
  refuseEarly(new InferenceError('api_error'), reply.raw, request.id);
}

/** The management API's envelope for its paths, the inference API's for all others, also if no path was read. */
function earlyEnvelope({ status, message }: EarlyRefusal, url = ''): string {
  if (isManagement({ url })) return envelopeOf(status === 503 ? 'unavailable' : 'invalid_request', message);
  const type = status === 503 ? 'overloaded_error' : 'invalid_request_error';
  return JSON.stringify({ error: { message, type, param: null, code: status === 503 ? type : null } });
}
