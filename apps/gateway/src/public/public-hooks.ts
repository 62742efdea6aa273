import { Injectable } from '@nestjs/common';
import { logger } from '@tollgate/runtime';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { closeIfUnread, leaveBodies } from '../accept/receive-body';
import { continueIfOwed } from '../accept/server';
import { sendError } from '../http/envelope';
import { OWN_ID_HEADER, ownIdOf } from '../http/request-id';
import { InferenceError } from '../inference-errors';
import { InFlight } from '../inference/client/in-flight';
import { InferenceRouter } from '../inference/inference-router';
import { KeptConnections } from '../inference/client/kept-connections';
import { loggedPath } from '../logged-path';
import { MANAGEMENT_ERRORS } from '../management/errors';
import { unknownRoute } from '../management/unknown-route.controller';
import { DOCS_PATHS } from '../openapi/docs.module';
import { isManagement } from './url-prefix';

/** What the public port does with a request before, beside and after the routes of its surfaces. */
@Injectable()
export class PublicHooks {
  private readonly log = logger('gateway');

  constructor(
    private readonly inference: InferenceRouter,
    private readonly inFlight: InFlight,
    private readonly connections: KeptConnections,
  ) {}

  /** Binds the inference routes too. Nest binds the routes of the other surfaces later. */
  addTo(server: FastifyInstance): void {
    leaveBodies(server);
    server.setErrorHandler((error: Error, request, reply) => this.sendEarlyError(error, request, reply));
    server.setNotFoundHandler((request, reply) => this.refuseUnbound(request, reply));
    server.addHook('onRequest', (request, reply, done) => this.begin(request, reply, done));
    server.addHook('onSend', (request, reply, payload, done) => {
      closeIfUnread(request, reply);
      done(null, payload);
    });
    // Requests are logged only at level debug: a line costs a quarter of the hot path's own work.
    if (this.log.isLevelEnabled('debug'))
      server.addHook('onResponse', (request, reply, done) => {
        this.logAnswer(request, reply);
        done();
      });
    this.connections.watch(server.server);
    this.inference.bindTo(server);
  }

  /** See InferenceRouter. */
  takeUsual(request: IncomingMessage, response: ServerResponse): boolean {
    return this.inference.takeUsual(request, response);
  }

  /** Another application on this port answers. */
  passTo(handle: RequestListener, request: IncomingMessage, response: ServerResponse): void {
    if (this.inFlight.leaving) response.setHeader('connection', 'close');
    continueIfOwed(request, response);
    this.countRunning(response);
    handle(request, response);
  }

  /** Answers errors of Fastify itself: a path that cannot be decoded. */
  sendEarlyError(error: Error & { statusCode?: number }, request: FastifyRequest, reply: FastifyReply): void {
    const status = error.statusCode ?? 500;
    if (isManagement(request)) {
      // An undecodable path is refused before the hook that sets the headers.
      this.addHeaders(request, reply);
      return sendError(MANAGEMENT_ERRORS, 'management', error, reply);
    }
    if (status < 500) return this.refuseRoute(request, reply);
    reply.hijack();
    this.log.error({ requestId: request.id, err: error }, 'answered 500');
    this.inference.refuseEarly(new InferenceError('api_error'), reply.raw, request.id);
  }

  private begin(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    this.addHeaders(request, reply);
    if (isManagement(request)) this.countRunning(reply.raw);
    // Unknown routes are refused before a body is read.
    if (!request.is404 || isManagement(request)) return done();
    this.refuseRoute(request, reply);
  }

  private addHeaders(request: FastifyRequest, reply: FastifyReply): void {
    reply.headers({ 'x-request-id': request.id, [OWN_ID_HEADER]: ownIdOf(request.raw, request.id) });
    if (this.inFlight.leaving) reply.header('connection', 'close');
  }

  /** Nest binds no route for this HTTP method. */
  private refuseUnbound(request: FastifyRequest, reply: FastifyReply): void {
    if (isManagement(request)) sendError(MANAGEMENT_ERRORS, 'management', unknownRoute(request.url), reply);
    else this.refuseRoute(request, reply);
  }

  private refuseRoute(request: FastifyRequest, reply: FastifyReply): void {
    reply.hijack();
    this.inference.refuseUnknownRoute(request.url, reply.raw, request.id, DOCS_PATHS);
  }

  /** A shutdown lets management requests finish too; they usually take milliseconds. */
  private countRunning(response: ServerResponse): void {
    const running = { cutOff: () => void response.destroy() };
    this.inFlight.begin(running);
    response.once('close', () => this.inFlight.end(running));
  }

  private logAnswer(request: FastifyRequest, reply: FastifyReply): void {
    this.log.debug(
      {
        requestId: request.id,
        method: request.method,
        path: loggedPath(request.url),
        status: reply.raw.statusCode,
        ms: Math.round(reply.elapsedTime),
      },
      'answered',
    );
  }
}
