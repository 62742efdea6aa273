import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { limitConnections, type PortName } from './connection-limit';
import { Exchanges } from './exchanges';
import { validateHttp } from './http-form';
import { isLingering, linger } from './linger';
import { closingAnswer, type EarlyRefusal, type Envelope, rawAnswer } from './raw-answer';

export interface AcceptOptions {
  port: PortName;
  maxConnections: number;
  /** For the head and body of one request to arrive; not for its answer. */
  requestTimeoutMs: number;
  keepAliveTimeoutMs?: number;
  envelope: Envelope;
}

const RETRY_AFTER_SECONDS = 1;
/**
 * A connection on which nothing comes or goes for so long is asked for a sign of life by the kernel, once a second;
 * after ten without an answer it is closed, and its request with it.
 */
const KEEP_ALIVE_PROBES_AFTER_MS = 10_000;
/** Requests whose client waits to be told that it may send the body. */
const owed = new WeakSet<IncomingMessage>();

/**
 * The server of a port: node:http, and strict where that is lenient. Refuses what two readers could read in two ways,
 * and connections beyond the limit, in the port's envelope; says `100 Continue` only when somebody reads the body;
 * never writes into an answer that has begun; and reads nothing more of a body that nobody wants.
 */
export function acceptingServer(handler: RequestListener, options: AcceptOptions): Server {
  const { envelope, requestTimeoutMs, keepAliveTimeoutMs } = options;
  const server = createServer({
    // Asked for here, to be refused in the envelope.
    requireHostHeader: false,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_PROBES_AFTER_MS,
    requestTimeout: requestTimeoutMs,
    ...(keepAliveTimeoutMs !== undefined && { keepAliveTimeout: keepAliveTimeoutMs }),
  });
  const exchanges = new Exchanges();
  const refuse = (response: ServerResponse, refusal: EarlyRefusal): void => {
    const { headers, body } = closingAnswer(refusal, envelope);
    response.writeHead(refusal.status, headers.flat());
    response.end(body);
  };
  const accept = (request: IncomingMessage, response: ServerResponse): void => {
    if (isLingering(request.socket)) return;
    exchanges.begin(request, response);
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
    exchanges.begin(request, response);
    refuse(response, { status: 417, message: 'The only supported Expect header is "100-continue".' });
  });
  server.on('clientError', (error: Error & { code?: string }, socket: Socket) => {
    if (isLingering(socket)) return;
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    if (exchanges.mayBeTold(socket)) tellAndClose(socket, refusalOf(error.code), envelope);
  });
  return server;
}

/**
 * Tells a client that waits with its body (`Expect: 100-continue`) to send it. To be called by whoever reads it, once
 * it is known who asks.
 */
export function continueIfOwed(request: IncomingMessage, response: ServerResponse): void {
  if (owed.delete(request) && !response.headersSent) response.writeContinue();
}

/** What is no HTTP at all, or too slow, or with too large a head: there is no request, only a socket. */
function refusalOf(code: string | undefined): EarlyRefusal {
  if (code === 'HPE_HEADER_OVERFLOW')
    return { status: 431, message: 'The request headers are too large. Send fewer or shorter ones.' };
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return { status: 408, message: 'The request did not arrive in time. Send it again.' };
  return { status: 400, message: 'The request is not valid HTTP.' };
}

function tellAndClose(socket: Socket, refusal: EarlyRefusal, envelope: Envelope): void {
  socket.write(rawAnswer(refusal, envelope));
  linger(socket);
}
