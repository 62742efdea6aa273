import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { hasUnreadBody } from './http-form';
import { linger } from './linger';

/**
 * The most requests of a connection in progress. HTTP/1.1 lets a client send further ones before it has the answer, and
 * hardly any does. node:http bounds only their bytes: 64 KiB are some 2,000 requests, of several KiB in memory each.
 */
const MAX_PIPELINED = 64;

/** The answers in progress of each connection that has had a request. */
const running = new WeakMap<Socket, ServerResponse[]>();

/** Whether a connection has no answer in progress. Null: it has not had a request yet. */
export function isIdle(socket: Socket): boolean | null {
  const responses = running.get(socket);
  return responses ? responses.length === 0 : null;
}

/**
 * The exchanges in progress on a port, by connection: which responses may write to it, and whether it can be used
 * again.
 */
export class Exchanges {
  private readonly ending = new WeakSet<Socket>();

  /**
   * Called once for each connection. After an answer with `Connection: close`, node:http calls `destroySoon`, even when
   * the request was not fully read.
   */
  connected(socket: Socket): void {
    const closeAtOnce = socket.destroySoon;
    socket.destroySoon = () => {
      if (this.ending.has(socket) || this.of(socket).some(({ req }) => !req.complete)) linger(socket);
      else closeAtOnce.call(socket);
    };
  }

  /** False: the connection had too many requests in progress. It is closed, and the request gets no answer. */
  begin({ socket }: IncomingMessage, response: ServerResponse): boolean {
    let responses = running.get(socket);
    if (!responses) running.set(socket, (responses = []));
    if (responses.length >= MAX_PIPELINED) {
      socket.destroy();
      return false;
    }
    responses.push(response);
    response.once('close', () => {
      responses.splice(responses.indexOf(response), 1);
      // node:http would read an unwanted body of any length to its end.
      if (hasUnreadBody(response.req) && !socket.destroyed) linger(socket);
      else if (this.ending.has(socket) && !this.of(socket).some(isAnswered)) linger(socket);
    });
    return true;
  }

  /**
   * The bytes received on this connection are not valid HTTP. True: no answer is in progress, so the caller may send an
   * error and close. False: an answer is in progress, and any other byte would be taken for a part of it. The
   * connection then closes after that answer, without an error.
   */
  mayBeTold(socket: Socket): boolean {
    const answered = this.of(socket).filter(isAnswered);
    if (answered.length === 0) return true;
    this.ending.add(socket);
    // A head that is not written yet then says `Connection: close`.
    for (const response of answered) response.shouldKeepAlive = false;
    return false;
  }

  /** The request whose head has arrived, and whose body is still to come. */
  receiving(socket: Socket): IncomingMessage | undefined {
    return this.of(socket).find(({ req }) => !req.complete)?.req;
  }

  private of(socket: Socket): readonly ServerResponse[] {
    return running.get(socket) ?? [];
  }
}

/** False for a request whose own body is malformed: it gets no answer but our error. */
function isAnswered(response: ServerResponse): boolean {
  return response.headersSent || response.req.complete;
}
