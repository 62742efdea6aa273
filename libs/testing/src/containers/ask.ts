import { connect } from 'node:net';

const ANSWER_TIMEOUT_MS = 2_000;

/**
 * Sends bytes to a port of 127.0.0.1 and returns the answer as soon as `complete` accepts it. Throws when the
 * connection fails or ends, or after 2 s. It probes a server without its client library.
 */
export function ask(port: number, request: Buffer | string, complete: (answer: Buffer) => boolean): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let answer = Buffer.alloc(0);
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(request));
    const end = (error?: Error): void => {
      socket.destroy();
      if (error) reject(error);
      else resolve(answer);
    };
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => end(new Error(`no answer from port ${port}`)));
    socket.on('error', end);
    socket.on('close', () => end(new Error(`port ${port} closed the connection`)));
    socket.on('data', (data) => {
      answer = Buffer.concat([answer, data]);
      if (complete(answer)) end();
    });
  });
}
