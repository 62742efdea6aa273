import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { eventually } from '@tollgate/testing';
import { ask, backend, closeAll, modelWith, upstreamWith } from '../exchange.fixture';

/** So long that only the gateway closes an idle connection in a test. */
const KEEP_ALIVE_MS = 600_000;

afterAll(closeAll);

it('the connections of a backend that left the configuration are closed, those of running calls after them', async () => {
  const upstream = upstreamWith({});
  const sockets = new Set<Socket>();
  const running: ServerResponse[] = [];
  const one = await backend(({ socket }, response) => {
    (socket as Socket & { server: Server }).server.keepAliveTimeout = KEEP_ALIVE_MS;
    sockets.add(socket);
    running.push(response);
  });
  const open = () => [...sockets].filter(({ destroyed }) => !destroyed).length;
  const former = { ...one, connectionKey: `${one.origin} former` };
  const answered = async (count: number, calls: ReturnType<typeof ask>[]) => {
    await eventually(() => expect(running.length).toBe(count));
    for (const response of running.splice(0)) response.end('yes');
    expect((await Promise.all(calls)).map(({ kind }) => kind)).toEqual(calls.map(() => 'answer'));
  };
  await answered(2, [ask(upstream, former), ask(upstream, former)]);
  upstream.follow([modelWith([former])]);
  const call = ask(upstream, former);
  await eventually(() => expect(running.length).toBe(1));
  // One is idle.
  expect([sockets.size, open()]).toEqual([2, 2]);
  upstream.follow([modelWith([one])]);
  await eventually(() => expect(open()).toBe(1));
  await answered(1, [call]);
  await eventually(() => expect(open()).toBe(0));
  await answered(1, [ask(upstream, one)]);
  expect(open()).toBe(1);
});
