import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { linger } from './linger';

/**
 * The exchanges of a port that have not ended, by connection: who may write to it, and whether it can be used again.
 */
export class Exchanges {
  private readonly running = new WeakMap<Socket, Set<ServerResponse>>();
  private readonly ending = new WeakSet<Socket>();

  /**
   * Called once a connection. node:http closes it by `destroySoon` after an answer with `Connection: close`, whether or
   * not all was read.
   */
  connected(socket: Socket): void {
    const closeAtOnce = socket.destroySoon;
    socket.destroySoon = () => {
      if (this.ending.has(socket) || this.of(socket).some(({ req }) => !req.complete)) linger(socket);
      else closeAtOnce.call(socket);
    };
  }

  begin({ socket }: IncomingMessage, response: ServerResponse): void {
    let responses = this.running.get(socket);
    if (!responses) this.running.set(socket, (responses = new Set()));
    responses.add(response);
    response.once('close', () => {
      responses.delete(response);
      // node:http would read on, to its end, what nobody wants: a body of any length.
      if (!response.req.complete && !socket.destroyed) linger(socket);
      else if (this.ending.has(socket) && !this.of(socket).some(isAnswered)) linger(socket);
    });
  }

  /**
   * What comes on this connection is no HTTP. True: nobody is being answered on it, so it may be said, and then the
   * connection be closed. False: an answer is on its way, and any other byte would be taken for a part of it; the
   * connection closes after it, without a word.
   */
  mayBeTold(socket: Socket): boolean {
    const answered = this.of(socket).filter(isAnswered);
    if (answered.length === 0) return true;
    this.ending.add(socket);
    // Where the head is not written yet, it says so.
    for (const response of answered) response.shouldKeepAlive = false;
    return false;
  }

  private of(socket: Socket): ServerResponse[] {
    return [...(this.running.get(socket) ?? [])];
  }
}

/** Not one whose own body is what cannot be read: there will be no answer to that but ours. */
function isAnswered(response: ServerResponse): boolean {
  return response.headersSent || response.req.complete;
}
