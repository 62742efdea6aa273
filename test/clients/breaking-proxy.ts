import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A proxy that loses answers. */
export interface BreakingProxy {
  url: string;
  /** Connections that it was asked for. */
  connections: number;
  close(): Promise<void>;
}

/**
 * Passes connections on to the port of `url`. The first one breaks when the first byte of an answer comes, which the
 * client never sees.
 */
export async function breakingProxy(url: string): Promise<BreakingProxy> {
  const open = new Set<Socket>();
  const server = createServer((client) => {
    proxy.connections += 1;
    const isBroken = proxy.connections === 1;
    const upstream = connect(Number(new URL(url).port), '127.0.0.1');
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        open.delete(socket);
        other.destroy();
      });
    }
    client.pipe(upstream);
    if (isBroken) upstream.once('data', () => client.destroy());
    else upstream.pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: BreakingProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: 0,
    close: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
}
