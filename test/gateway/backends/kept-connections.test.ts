import { eventually } from '@tollgate/testing';
import { once } from 'node:events';
import { Agent, createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { stopOf } from '../../../apps/gateway/src';
import { KeptConnections } from '../../../apps/gateway/src/inference/client/kept-connections';
import { PublicHooks } from '../../../apps/gateway/src/public/public-hooks';
import { useOwnBackend } from './own-backend';
import { type Caller, useGateway } from '../use-gateway';

/** Streams of the backend, by the name in their prompt. Each ends when its test says so. */
const streams = new Map<string, ServerResponse>();
const yaml = useOwnBackend('told', (incoming, response) => {
  void text(incoming).then((body) => {
    const { messages } = JSON.parse(body) as { messages: { content: string }[] };
    streams.set(messages[0]!.content, response);
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  });
});
const gateway = useGateway({ yaml });

/** Longer than a busy machine takes for all of it. */
const DRAIN_MS = 120_000;
let caller: Caller;

/** A client that keeps one connection. */
class Client {
  readonly agent = new Agent({ keepAlive: true, maxSockets: 1 });

  /** Resolves at the end of the answer. Rejects if there is none. */
  async ask(fields: object): Promise<{ status: number; connection: string; text: string; socket: Socket }> {
    const headers = { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' };
    const sent = request(`${gateway.url}/v1/chat/completions`, { method: 'POST', agent: this.agent, headers });
    sent.end(JSON.stringify({ max_tokens: 2, ...fields }));
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const { statusCode: status, socket } = answer;
    return { status: status!, connection: answer.headers.connection!, text: await text(answer), socket };
  }

  plain() {
    return this.ask({ model: 'small', messages: [{ role: 'user', content: 'Hello' }] });
  }
}

/** Begins a stream. The result ends it, and resolves to what the client got. */
async function beginStream(client: Client, name: string) {
  const messages = [{ role: 'user', content: name }];
  const answer = client.ask({ model: 'told', stream: true, messages });
  const backend = await eventually(() => {
    expect(streams.has(name)).toBe(true);
    return streams.get(name)!;
  });
  const chunk = JSON.stringify({ choices: [{ index: 0, delta: { content: 'word' }, finish_reason: 'stop' }] });
  return () => {
    backend.end(`data: ${chunk}\n\ndata: [DONE]\n\n`);
    return answer;
  };
}

describe('at a stop, a connection whose stream began before the signal', () => {
  const [inLameDuck, inDrain, quiet, idle] = Array.from({ length: 4 }, () => new Client());
  let endInLameDuck: Awaited<ReturnType<typeof beginStream>>;
  let endInDrain: typeof endInLameDuck;
  let endQuiet: typeof endInLameDuck;
  let idleSocket: Socket;
  let drained: Promise<boolean>;

  beforeAll(async () => {
    caller = await gateway.caller();
    endInLameDuck = await beginStream(inLameDuck!, 'ends in the lame duck time');
    endInDrain = await beginStream(inDrain!, 'ends in the drain');
    endQuiet = await beginStream(quiet!, 'has no further request');
    idleSocket = (await idle!.plain()).socket;
    // No test depends on how soon a busy machine sends the next request.
    gateway.app.get(KeptConnections, { strict: false }).nextRequestMs = DRAIN_MS;
    stopOf(gateway.app).leave();
  });
  afterAll(() => {
    for (const { agent } of [inLameDuck!, inDrain!, quiet!, idle!]) agent.destroy();
  });

  async function takesOneMore(client: Client, end: typeof endInLameDuck): Promise<void> {
    const streamed = await end();
    expect(streamed).toMatchObject({ status: 200, connection: 'keep-alive' });
    const next = await client.plain();
    expect(next).toMatchObject({ status: 200, connection: 'close' });
    expect(next.socket).toBe(streamed.socket);
  }

  it('takes one more request in the lame duck time, which ends it', () => takesOneMore(inLameDuck!, endInLameDuck));

  it.each(['/docs', '/v1/nothing', '/_api/v1/nothing', '/%zz', '/_api/%zz'])(
    'ends with any other answer, as of %s',
    async (path) => {
      const answer = await fetch(gateway.url + path);
      await answer.text();
      expect(answer.headers.get('connection')).toBe('close');
    },
  );

  it('ends with an answer of another application on the port', async () => {
    const hooks = gateway.app.get(PublicHooks, { strict: false });
    const server = createServer((incoming, response) => hooks.passTo((_, to) => to.end(), incoming, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    server.close();
    expect(answer.headers.get('connection')).toBe('close');
  });

  it('takes one more request in the drain, while idle connections end and others are refused', async () => {
    expect(idleSocket.destroyed).toBe(false);
    const idleEnds = once(idleSocket, 'close');
    drained = stopOf(gateway.app).drain(DRAIN_MS);
    await idleEnds;
    expect(await new Client().plain()).toMatchObject({ status: 503, connection: 'close' });
    await takesOneMore(inDrain!, endInDrain);
  });

  it('ends soon without a further request, and then the drain ends', async () => {
    gateway.app.get(KeptConnections, { strict: false }).nextRequestMs = 1;
    let isDrained = false;
    void drained.then(() => (isDrained = true));
    expect(isDrained).toBe(false);
    const { text: streamed, socket } = await endQuiet();
    expect(streamed).toContain('data: [DONE]');
    expect(await drained).toBe(true);
    if (!socket.destroyed) await once(socket, 'close');
  });
});
