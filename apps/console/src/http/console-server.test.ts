import { RawSocket } from '@tollgate/testing';
import { ConsoleServer } from './console-server';

it('a connection with too many requests before the answer to the first is closed', async () => {
  let reached = 0;
  const server = await ConsoleServer.listen(() => void (reached += 1), '127.0.0.1', 0);
  try {
    const requests = 'GET /console HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_000);
    expect(await new RawSocket(server.url).send(requests).toEnd()).toBe('');
    expect(reached).toBeLessThanOrEqual(64);
  } finally {
    await server.close(0);
  }
});

it('a connection carries any number of requests one after the other', async () => {
  const server = await ConsoleServer.listen(({ url }, response) => void response.end(`<${url}>`), '127.0.0.1', 0);
  try {
    const socket = new RawSocket(server.url);
    for (let n = 1; n <= 100; n++) await socket.send(`GET /${n} HTTP/1.1\r\nHost: a\r\n\r\n`).until(`</${n}>`);
  } finally {
    await server.close(0);
  }
});
