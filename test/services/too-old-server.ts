import { connect, createServer, type AddressInfo } from 'node:net';

/** The version of PostgreSQL as a number, `170006`. */
const VERSION = /1[6-9]0(\d{3})/g;
/** The version as a text, `17.6 (Debian …)`. */
const NAME = /1[6-9](\.\d)/g;
/** The first byte of the messages of a login. */
const AUTHENTICATION = 'R'.charCodeAt(0);

/**
 * A proxy to a real PostgreSQL that changes the version in its answers to 15, because no server that old is available
 * to tests. The rest of the answers is unchanged.
 */
export async function tooOldServer(port: number): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((client) => {
    const upstream = connect({ port, host: '127.0.0.1' });
    client.pipe(upstream);
    upstream.on('data', (bytes) => {
      // Messages of the login stay unchanged, because they could look like a version by chance.
      if (bytes[0] === AUTHENTICATION) return void client.write(bytes);
      const text = bytes.toString('latin1').replace(VERSION, '150$1').replace(NAME, '15$1');
      client.write(Buffer.from(text, 'latin1'));
    });
    upstream.on('end', () => client.end());
    for (const socket of [client, upstream])
      socket.on('error', () => {
        client.destroy();
        upstream.destroy();
      });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
