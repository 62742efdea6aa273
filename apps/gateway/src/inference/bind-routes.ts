import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type InferenceKind, newId } from '@tollgate/contracts';
import { Client } from './client';
import { InferenceError } from './errors';
import type { InFlight } from './in-flight';
import type { Pipeline } from './pipeline';
import { unavailable } from './refusals';

type Run = (pipeline: Pipeline, request: IncomingMessage, client: Client) => Promise<void>;

const infer =
  (kind: InferenceKind): Run =>
  (pipeline, request, client) =>
    pipeline.infer(kind, request, client);

/** The four routes, each also without `/v1`. */
const ROUTES: readonly { path: string; method: 'GET' | 'POST'; run: Run }[] = [
  { path: '/chat/completions', method: 'POST', run: infer('chat') },
  { path: '/completions', method: 'POST', run: infer('completion') },
  { path: '/embeddings', method: 'POST', run: infer('embedding') },
  { path: '/models', method: 'GET', run: (pipeline, request, client) => pipeline.listModels(request, client) },
];
const PREFIXES = ['/v1', ''];

/** Binds the inference routes on the server itself: the handler gets the raw request and response, and nothing of Nest or of Fastify's body and reply handling is in between. */
export function bindInference(server: FastifyInstance, pipeline: Pipeline, inFlight: InFlight): void {
  void server.register((scope, _options, done) => {
    // The pipeline reads the body itself, after it knows who sends it.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, _payload, parsed) => parsed(null));
    for (const { path, method, run } of ROUTES) {
      const handler = (request: FastifyRequest, reply: FastifyReply): void => {
        reply.hijack();
        // A caller's own id may come twice, and is never a key to money.
        const id = request.raw.headers['x-request-id'] === request.id ? newId('req') : request.id;
        const client = new Client(reply.raw, request.id, id, inFlight.draining);
        if (inFlight.draining) return client.refuse(unavailable());
        inFlight.begin(client);
        void run(pipeline, request.raw, client).finally(() => client.afterLastByte(() => inFlight.end(client)));
      };
      for (const prefix of PREFIXES) scope.route({ url: prefix + path, method, handler });
    }
    done();
  });
}

/**
 * What is said to a request that no route takes, in the inference API's envelope: 405 with `Allow` where the address is known.
 * @param pages other addresses of the port, which are only read
 */
export function refuseUnknownRoute(
  url: string,
  response: ServerResponse,
  requestId: string,
  pages: readonly string[],
): void {
  const path = url.split('?', 1)[0]!;
  const route = ROUTES.find((candidate) => PREFIXES.some((prefix) => path === prefix + candidate.path));
  const method = route?.method ?? (pages.includes(path) ? 'GET' : undefined);
  if (method) response.setHeader('allow', method === 'GET' ? 'GET, HEAD' : method);
  refuseEarly(new InferenceError(method ? 'method_not_allowed' : 'route_not_found'), response, requestId);
}

/** An error before any route was reached. */
export function refuseEarly(error: InferenceError, response: ServerResponse, requestId: string): void {
  new Client(response, requestId, requestId, false).refuse(error);
}
