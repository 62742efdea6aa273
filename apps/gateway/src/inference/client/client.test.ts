import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from './client';

const TRACE = '0af7651916cd43dd8448eb211c80319c';

it('what is logged of a request has its id, our own, and the id of the caller’s trace', async () => {
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
