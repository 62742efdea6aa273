import type { IncomingMessage, ServerResponse } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import { logger, type Tracer } from '@tollgate/runtime';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { KeyActivity } from '../activity/key-activity';
import { ownIdOf, requestIdOf } from '../http/request-id';
import { traceContextOf } from '../http/trace-context';
import { allowedMethods, prefixed, REST_OF_PATH, routesOf } from '../openapi/route-table';
import { GATEWAY_OPTIONS, type GatewayOptions } from '../options';
import { Client } from './client/client';
import { CLIENT_CLOSED, refusedRequest } from './report/refused-request';
import { InferenceError } from '../inference-errors';
import { InFlight } from './client/in-flight';
import { KeptConnections } from './client/kept-connections';
import { Pipeline } from './pipeline';
import { RequestTrace } from './report/request-trace';
import { unavailable } from './refusals';
import { INFERENCE_PREFIX, INFERENCE_ROUTES, type InferenceEndpoint } from './routes';
import { UnreadAnswers } from './client/unread-answers';

/** Each route is bound with the prefix and without it. */
const BOUND_ROUTES = { ...prefixed(INFERENCE_PREFIX, INFERENCE_ROUTES), ...INFERENCE_ROUTES };

type Kind = InferenceEndpoint['kind'];

interface Received {
  request: IncomingMessage;
  response: ServerResponse;
  /** For the client: its own id, or ours. */
  id: string;
  /** The id of the model in the path of a model. */
  rest: string;
}

/** Finds the inference route of a request, and passes it to the pipeline. */
@Injectable()
export class InferenceRouter {
  private readonly tracer: Tracer | null;
  private readonly posts = new Map<string, Kind>();
  /** At level debug, a hook of Fastify logs each request. */
  private readonly mayPassFastify = !logger('gateway').isLevelEnabled('debug');

  constructor(
    private readonly pipeline: Pipeline,
    private readonly inFlight: InFlight,
    private readonly connections: KeptConnections,
    private readonly activity: KeyActivity,
    private readonly unread: UnreadAnswers,
    @Inject(GATEWAY_OPTIONS) { tracer }: GatewayOptions,
  ) {
    this.tracer = tracer ?? null;
    for (const { path, method, operation } of routesOf(BOUND_ROUTES))
      if (method === 'post') this.posts.set(path, operation.kind);
  }

  /**
   * Binds the routes directly on Fastify. The handlers get the raw request and response, without Nest and without
   * Fastify's handling of bodies and replies.
   */
  bindTo(server: FastifyInstance): void {
    for (const { path, method, operation } of routesOf(BOUND_ROUTES)) {
      const handler = (request: FastifyRequest, reply: FastifyReply): void => {
        reply.hijack();
        const { raw, url, id, params } = request;
        const rest = restOf(params);
        // A `*` also matches nothing, as in `/models/`.
        if (operation.kind === 'model' && rest === '') return this.refuseUnknownRoute(url, reply.raw, id, []);
        this.answer(operation.kind, { request: raw, response: reply.raw, id, rest });
      };
      server.route({ url: path.replace(REST_OF_PATH, '*'), method: method.toUpperCase(), handler });
    }
  }

  /**
   * Answers an inference request in its usual form without Fastify's routing, hooks and objects, which cost 3 % of a
   * request. Returns false for any other request: Fastify gets it.
   */
  takeUsual(request: IncomingMessage, response: ServerResponse): boolean {
    if (!this.mayPassFastify) return false;
    const kind = request.method === 'POST' ? this.posts.get(request.url!) : undefined;
    if (kind === undefined) return false;
    this.answer(kind, { request, response, id: requestIdOf(request), rest: '' });
    return true;
  }

  /**
   * Answers a request that no route matches, in the inference API's envelope: 405 with `Allow` if the path exists, else
   * 404.
   * @param pages other paths of the port, which allow only GET and HEAD
   */
  refuseUnknownRoute(url: string, response: ServerResponse, requestId: string, pages: readonly string[]): void {
    const path = url.split('?', 1)[0]!;
    const methods = allowedMethods(BOUND_ROUTES, path) ?? (pages.includes(path) ? 'GET, HEAD' : null);
    if (methods !== null) response.setHeader('allow', methods);
    const error = new InferenceError(methods !== null ? 'method_not_allowed' : 'route_not_found');
    void this.pipeline.refuseRoute(error, response.req, this.earlyClient(response, requestId));
  }

  /** Answers with an error before any route is reached. */
  refuseEarly(error: InferenceError, response: ServerResponse, requestId: string): void {
    this.earlyClient(response, requestId).refuse(error);
  }

  private earlyClient(response: ServerResponse, requestId: string): Client {
    return new Client(response, requestId, ownIdOf(response.req, requestId), this.inFlight.leaving);
  }

  private answer(kind: Kind, { request, response, id: requestId, rest }: Received): void {
    const { inFlight, connections } = this;
    // Money is never keyed by an id that a caller may reuse.
    const id = ownIdOf(request, requestId);
    const client = new Client(response, requestId, id, inFlight.leaving);
    const { socket } = request;
    if (inFlight.draining && !connections.isAwaited(socket)) return client.refuse(unavailable());
    client.unread = this.unread;
    if (this.tracer) client.traced = new RequestTrace(this.tracer, traceContextOf(request));
    inFlight.begin(client);
    if (inFlight.leaving) connections.arrived(socket);
    void this.answered(kind, request, rest, client).finally(() => {
      noteActivity(this.activity, client, Date.now());
      client.afterLastByte(() => {
        if (inFlight.leaving) connections.awaitNext(socket);
        inFlight.end(client);
      });
    });
  }

  private answered(kind: Kind, request: IncomingMessage, rest: string, client: Client): Promise<void> {
    if (kind === 'models') return this.pipeline.listModels(request, client);
    if (kind === 'model') return this.pipeline.retrieveModel(rest, request, client);
    return this.pipeline.infer(kind, request, client);
  }
}

/**
 * Notes the use or the refusal of a key for its owner. A key that is no longer in force was not used, but its refusal
 * can be explained.
 */
function noteActivity(activity: KeyActivity, client: Client, nowMs: number): void {
  const { owner, formerOwner, refusal } = client;
  // A stream that broke off has an error, and usage: the usage says that it failed.
  if (owner !== null) activity.ended(owner, client.wasSettled ? null : (refusal?.code ?? null), nowMs);
  const of = owner ?? formerOwner;
  // A request with usage, and a repeat of one, are in the books.
  if (of === null || client.wasSettled || client.replayed === true) return;
  if (refusal === null && !client.left) return;
  activity.refused(of, refusal?.code ?? CLIENT_CLOSED, () => refusedRequest(client, of, refusal, nowMs));
}

/** What a `*` of Fastify matched, unescaped. */
function restOf(params: unknown): string {
  return (params as { '*'?: string })['*'] ?? '';
}
