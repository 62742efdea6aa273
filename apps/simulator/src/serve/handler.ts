import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { FaultPlan } from '../config/fault-rules';
import { ConfigError, type ModelSettings, type Settings } from '../config/settings';
import { chatCompletion } from '../wire/chat';
import { textCompletion } from '../wire/completions';
import { embeddings } from '../wire/embeddings';
import type { Reply } from '../wire/reply';
import { errorBody, faultError, RequestError } from '../wire/request-error';
import { isObject, readModel, type Body } from '../wire/request-fields';
import { Exchange } from './exchange';
import { Models } from './models';
import { emptyStats, type SimulatorStats } from './stats';
import { TokenCounters } from './token-counters';

const MAX_BODY_BYTES = 64 * 1024 * 1024;

/** A request as received, so that a test can check what a gateway sent. */
export interface RecordedRequest {
  method: string;
  path: string;
  headers: Record<string, string | string[] | undefined>;
  body: unknown;
}

type Endpoint = (body: Body, settings: ModelSettings, faults: FaultPlan) => Reply;

const ENDPOINTS: Record<string, Endpoint | undefined> = {
  '/v1/chat/completions': chatCompletion,
  '/v1/completions': textCompletion,
  '/v1/embeddings': embeddings,
};

/** Everything behind the port: routes, faults, counters. */
export class Handler {
  readonly #models: Models;
  #stats = emptyStats();
  #recorded: RecordedRequest[] = [];
  readonly #tokens = new TokenCounters();

  constructor(private readonly settings: Settings) {
    this.#models = new Models(settings);
  }

  readonly listen: RequestListener = (req, res) => {
    const path = (req.url ?? '').split('?', 1)[0]!;
    if (path.startsWith('/_simulator/')) return this.#control(path, req, res);
    if (path === '/metrics' && req.method === 'GET') return this.#metrics(req, res);
    const exchange = new Exchange(res, () => this.#stats);
    // If a client leaves while it sends, `end` never fires. The `close` event of the response ends the exchange then.
    const chunks: Buffer[] = [];
    let bytes = 0;
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
    });
    req.on('end', () => {
      try {
        if (bytes > MAX_BODY_BYTES) throw new RequestError(413, `the body is larger than ${MAX_BODY_BYTES} bytes`);
        this.#answer(path, req, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks), exchange);
      } catch (error) {
        refuse(error, exchange);
      }
    });
  };

  stats(): SimulatorStats {
    return { ...this.#stats };
  }

  requests(): RecordedRequest[] {
    return [...this.#recorded];
  }

  reset(): void {
    this.#stats = emptyStats(this.#stats.openNow);
    this.#recorded = [];
    this.#models.reset();
  }

  /** Checks the route, the body, the key and the model, applies the faults before the answer, and answers. */
  #answer(path: string, req: IncomingMessage, raw: Buffer, exchange: Exchange): void {
    const endpoint = ENDPOINTS[path];
    if (!endpoint && path !== '/v1/models')
      throw new RequestError(404, `unknown route ${path}`, null, 'route_not_found');
    if (req.method !== (endpoint ? 'POST' : 'GET'))
      throw new RequestError(405, `${req.method} is not allowed here`, null, 'method_not_allowed');
    const body = endpoint ? parseBody(raw) : {};
    this.#record(path, req, body);
    const { apiKey } = this.settings;
    if (apiKey !== null && req.headers.authorization !== `Bearer ${apiKey}`)
      throw new RequestError(401, 'incorrect API key provided', null, 'invalid_api_key');
    if (!endpoint) return exchange.error(200, this.#models.list());

    const model = readModel(body);
    const { settings, faults } = this.#models.take(model, body['simulator']);
    if (faults.hangSilently) return;
    exchange.after(faults.headersDelayMs, () => {
      if (faults.status !== null) {
        const retryAfter = faults.retryAfterSeconds === null ? [] : ['retry-after', String(faults.retryAfterSeconds)];
        return exchange.error(faults.status, errorBody(faultError(faults.status)), retryAfter);
      }
      try {
        const reply = endpoint(body, settings, faults);
        const tokens = this.#tokens.of(model);
        tokens.prompt += reply.promptTokens;
        exchange.onGenerated = (generated) => (tokens.generation += generated);
        if (reply.stream) exchange.stream(reply.frames, settings, faults);
        else exchange.plain(reply.body, reply.tokens, settings, faults);
      } catch (error) {
        refuse(error, exchange);
      }
    });
  }

  #record(path: string, req: IncomingMessage, body: Body): void {
    const { recordRequests } = this.settings;
    if (recordRequests === 0) return;
    if (this.#recorded.length >= recordRequests) this.#recorded.shift();
    this.#recorded.push({ method: req.method ?? '', path, headers: { ...req.headers }, body });
  }

  /** Outside the API and without its key, as engines serve it. */
  #metrics(req: IncomingMessage, res: ServerResponse): void {
    req.resume();
    res.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }).end(this.#tokens.page());
  }

  #control(path: string, req: IncomingMessage, res: ServerResponse): void {
    req.resume();
    const route = `${req.method} ${path}`;
    const answers: Record<string, (() => unknown) | undefined> = {
      'GET /_simulator/stats': () => this.stats(),
      'GET /_simulator/requests': () => this.requests(),
      'POST /_simulator/reset': () => this.reset(),
    };
    const answer = answers[route];
    const body = JSON.stringify(
      answer ? (answer() ?? {}) : { error: { message: `simulator: unknown route ${route}` } },
    );
    res.writeHead(answer ? 200 : 404, { 'content-type': 'application/json' }).end(body);
  }
}

function parseBody(raw: Buffer): Body {
  let body: unknown;
  try {
    body = JSON.parse(raw.toString('utf8'));
  } catch {
    throw new RequestError(400, 'the body is not JSON', null, 'invalid_json');
  }
  if (!isObject(body)) throw new RequestError(400, 'the body must be an object', null, 'invalid_type');
  return body;
}

/** Answers an invalid request with 4xx. Any other error is a bug of this program: it answers 500 and warns. */
function refuse(error: unknown, exchange: Exchange): void {
  let refusal: RequestError;
  if (error instanceof RequestError) refusal = error;
  else if (error instanceof ConfigError) refusal = new RequestError(400, error.message, 'simulator', 'invalid_value');
  else {
    process.emitWarning(error instanceof Error ? error : String(error));
    refusal = new RequestError(500, String(error));
  }
  exchange.error(refusal.status, errorBody(refusal));
}
