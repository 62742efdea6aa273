import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { limitConnections, type PortName } from './connection-limit';
import { Exchanges } from './exchanges';
import { validateHttp } from './http-form';
import { isLingering, linger } from './linger';
import { readProxyHeaders } from './proxied-connections';
import { closingAnswer, type EarlyRefusal, type Envelope, rawAnswer } from './raw-answer';

export interface AcceptOptions {
  port: PortName;
  maxConnections: number;
  /** For the head and body of a request to arrive. Its answer may take longer. */
  requestTimeoutMs: number;
  envelope: Envelope;
  /** Who may name its client by a PROXY header. */
  isProxy?: (address: string) => boolean;
}

const RETRY_AFTER_SECONDS = 1;
const NO_PROXY = 'CONNECT is not supported: this server is no proxy. Send requests to its own address.';
/**
 * An idle connection stays open for longer than a load balancer keeps it (65 s, deploy/haproxy/haproxy.cfg). Otherwise
 * a request that is sent while the connection closes has no answer, and nobody repeats a POST.
 */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
/**
 * After this time without traffic, the kernel probes a connection once a second. After ten probes without an answer the
 * connection is closed, and its request is aborted.
 */
const KEEP_ALIVE_PROBES_AFTER_MS = 10_000;
const ORIGIN = /^https?:\/\/[^/?#]*/i;
/** Requests whose client waits for `100 Continue` before it sends the body. */
const owed = new WeakSet<IncomingMessage>();

/**
 * The server of a port: node:http with stricter rules.
 * - It refuses ambiguous requests, and connections beyond the limit, in the envelope of the port.
 * - It closes a connection with too many requests in progress.
 * - It sends `100 Continue` only when the body is about to be read.
 * - It never writes into an answer that has begun.
 * - It does not read the rest of an unwanted body.
 * - It hands on every target as a path.
 */
export function acceptingServer(handler: RequestListener, options: AcceptOptions): Server {
  const { envelope, requestTimeoutMs } = options;
  const server = createServer({
    // Checked by `validateHttp`, so that the refusal is in the envelope.
    requireHostHeader: false,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBES_AFTER_MS,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
  });
  if (options.isProxy) readProxyHeaders(server, options.isProxy, requestTimeoutMs);
  const exchanges = new Exchanges();
  const refuse = (response: ServerResponse, refusal: EarlyRefusal): void => {
    const { headers, body } = closingAnswer(refusal, envelope, response.req);
    response.writeHead(refusal.status, headers.flat());
    response.end(body);
  };
  const begin = (request: IncomingMessage, response: ServerResponse): boolean => {
    request.url = withoutOrigin(request.url!);
    return exchanges.begin(request, response);
  };
  const accept = (request: IncomingMessage, response: ServerResponse): void => {
    if (isLingering(request.socket)) return;
    if (!begin(request, response)) return;
    const message = validateHttp(request);
    if (message === null) handler(request, response);
    else refuse(response, { status: 400, message });
  };
  server.on('connection', (socket) => exchanges.connected(socket));
  limitConnections(server, options, (socket) => {
    const message = 'Too many connections are open. Try again shortly.';
    tellAndClose(socket, { status: 503, message, retryAfterSeconds: RETRY_AFTER_SECONDS }, envelope);
  });
  server.on('request', accept);
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    owed.add(request);
    accept(request, response);
  });
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    if (!begin(request, response)) return;
    refuse(response, { status: 417, message: 'The only supported Expect header is "100-continue".' });
  });
  // Otherwise node:http closes the connection without an answer.
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    if (exchanges.mayBeTold(socket)) tellAndClose(socket, { status: 400, message: NO_PROXY }, envelope, request);
    else socket.destroy();
  });
  server.on('clientError', (error: Error & { code?: string }, socket: Socket) => {
    if (isLingering(socket)) return;
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    if (exchanges.mayBeTold(socket)) tellAndClose(socket, refusalOf(error.code), envelope, exchanges.receiving(socket));
  });
  return server;
}

/**
 * The target as a path. A client that takes us for its proxy sends the whole URL, which every server must accept (RFC
 * 9112, 3.2.2).
 */
function withoutOrigin(target: string): string {
  if (target.startsWith('/')) return target;
  const rest = target.replace(ORIGIN, '');
  return rest === target || rest.startsWith('/') ? rest : `/${rest}`;
}

/** Sends `100 Continue` to a client that waits for it. Called before the body is read, once the caller is known. */
export function continueIfOwed(request: IncomingMessage, response: ServerResponse): void {
  if (owed.delete(request) && !response.headersSent) response.writeContinue();
}

/** For input that never became a whole request: malformed, too slow, or with too large a head. */
function refusalOf(code: string | undefined): EarlyRefusal {
  if (code === 'HPE_HEADER_OVERFLOW')
    return { status: 431, message: 'The request headers are too large. Send fewer or shorter ones.' };
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return { status: 408, message: 'The request did not arrive in time. Send it again.' };
  return { status: 400, message: 'The request is not valid HTTP.' };
}

function tellAndClose(socket: Socket, refusal: EarlyRefusal, envelope: Envelope, request?: IncomingMessage): void {
  socket.write(rawAnswer(refusal, envelope, request));
  linger(socket);
}
