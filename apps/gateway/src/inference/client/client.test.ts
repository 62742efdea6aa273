import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { Client } from './client';

const TRACE = '0af7651916cd43dd8448eb211c80319c';

it('the log fields of a request are its id, our own id, and the id of the caller’s trace', async () => {
  const seen: object[] = [];
  const server = createServer((_, response) => {
    const client = new Client(response, 'mine', 'req_ours', false);
    seen.push(client.logged);
    client.answer(200, '{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await (await fetch(url)).text();
  await (await fetch(url, { headers: { traceparent: `00-${TRACE}-b7ad6b7169203331-01` } })).text();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  expect(seen).toEqual([
    { requestId: 'mine', id: 'req_ours' },
    { requestId: 'mine', id: 'req_ours', traceId: TRACE },
  ]);
});

it('a client is queued while an earlier answer of its connection is not complete', async () => {
  const clients: Client[] = [];
  const responses: ServerResponse[] = [];
  const server = createServer((_, response) => {
    clients.push(new Client(response, 'mine', 'req_ours', false));
    responses.push(response);
    if (responses.length === 2) server.emit('both');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').resume();
  const both = once(server, 'both');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2));
  await both;
  // More than its buffer takes.
  expect(clients[1]!.write('x'.repeat(1_000_000))).toBe(false);
  expect(clients.map((client) => client.isQueued)).toEqual([false, true]);
  clients[0]!.answer(200, '{}');
  await once(responses[1]!, 'drain');
  expect(clients[1]!.isQueued).toBe(false);
  socket.destroy();
  server.close();
  await once(server, 'close');
});
