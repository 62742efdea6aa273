import { baseUrl, openPort, settlesWithin } from '@tollgate/runtime';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const SETTINGS = { host: 'TOLLGATE_CONSOLE_HOST', port: 'TOLLGATE_CONSOLE_PORT' };
/** People use the console, so this is far more than they need. Further connections are closed. */
const MAX_CONNECTIONS = 2_000;
/** Requests of a connection in progress: a client may send further ones before it has the answer to the first. */
const MAX_PIPELINED = 64;
/** For the head and body of a request to arrive. */
const REQUEST_TIMEOUT_MS = 30_000;
/** Longer than load balancers keep a connection, so that they close it. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;

/** The port of the console as a separate service. */
export class ConsoleServer {
  private readonly running = new Set<ServerResponse>();
  private readonly runningOf = new WeakMap<Socket, number>();
  private leaving = false;
  private idle: () => void = () => {};

  private constructor(
    private readonly server: Server,
    readonly url: string,
    readonly port: number,
  ) {}

  /** Rejects with StartError when the port cannot be opened. */
  static async listen(handle: RequestListener, host: string, port: number): Promise<ConsoleServer> {
    const server = createServer({
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    });
    server.maxConnections = MAX_CONNECTIONS;
    const bound = await openPort(server, host, port, SETTINGS);
    const console = new ConsoleServer(server, baseUrl(host, bound), bound);
    server.on('request', (request, response) => {
      if (console.begin(request.socket, response)) handle(request, response);
    });
    return console;
  }

  /** Before `close`, while requests are still accepted: each answer ends its connection from now on. */
  leave(): void {
    this.leaving = true;
  }

  /**
   * Accepts nothing more, and waits at most `timeoutMs` until running requests are answered. Streams of events have no
   * end, so end them before.
   */
  async close(timeoutMs: number): Promise<void> {
    this.leave();
    const closed = new Promise((resolve) => this.server.close(resolve));
    const answered = new Promise<void>((resolve) => (this.idle = resolve));
    if (this.running.size > 0) await settlesWithin(timeoutMs, answered);
    this.server.closeAllConnections();
    await closed;
  }

  /** False: the connection had too many requests in progress, and is closed. */
  private begin(socket: Socket, response: ServerResponse): boolean {
    const others = this.runningOf.get(socket) ?? 0;
    if (others >= MAX_PIPELINED) {
      socket.destroy();
      return false;
    }
    if (this.leaving) response.setHeader('connection', 'close');
    this.running.add(response);
    this.runningOf.set(socket, others + 1);
    response.once('close', () => {
      this.running.delete(response);
      this.runningOf.set(socket, this.runningOf.get(socket)! - 1);
      if (this.running.size === 0) this.idle();
    });
    return true;
  }
}
