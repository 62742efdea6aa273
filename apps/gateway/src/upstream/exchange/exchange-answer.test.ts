import { metrics } from '@tollgate/runtime';
import { eventually } from '@tollgate/testing';
import type { ServerResponse } from 'node:http';
import { PlainRelay } from './plain-answer';
import {
  type Answer,
  ask,
  askedOf,
  backend,
  closeAll,
  exchangeWith,
  UNLIMITED,
  streamFrom,
  upstreamWith,
  wholeRelay,
} from '../exchange.fixture';

const upstream = upstreamWith({});
const impatient = upstreamWith({ timeoutMs: 500 });
/** Turns of the event loop, a few microseconds each. A slow machine needs no more of them. */
const MAX_TURNS = 2_000;
const nonsense: Answer = (_, response) => void response.end('no');
const well: Answer = (_, response) => void response.end('yes');
afterAll(closeAll);

async function failuresOf(name: string): Promise<number> {
  const { values } = await metrics.getSingleMetric('tollgate_backend_calls_total')!.get();
  return values
    .filter(({ labels }) => labels['backend'] === name && labels['result'] === 'failed')
    .reduce((sum, { value }) => sum + value, 0);
}

describe('an exchange', () => {
  it('sends the backend’s own key, path and body', async () => {
    let seen: unknown;
    const echo = await backend((request, response) => {
      seen = [request.method, request.url, request.headers.authorization, request.headers['content-length']];
      response.end('yes');
    });
    expect(await ask(upstream, echo)).toEqual({ kind: 'answer', answer: Buffer.from('yes') });
    expect(seen).toEqual(['POST', '/v1/x', 'Bearer secret', '5']);
  });

  it('asks another backend for an answer that cannot be used, once, and counts it as a failure', async () => {
    const [bad, worse, good] = [await backend(nonsense), await backend(nonsense), await backend(well)];
    const relayOf = () =>
      new PlainRelay(
        (body) =>
          Promise.resolve(
            body.toString() === 'yes' ? { kind: 'usable', answer: 'yes' } : { kind: 'unusable', reason: 'nonsense' },
          ),
        UNLIMITED,
      );
    for (let n = 0; n < 20; n++) {
      const relay = relayOf();
      expect(await relay.run(exchangeWith(relay, [bad, good], upstream))).toEqual({ kind: 'answer', answer: 'yes' });
    }
    const relay = relayOf();
    const failed = { kind: 'failed', failure: { kind: 'failed', reason: 'nonsense' } };
    expect(await relay.run(exchangeWith(relay, [worse, { ...worse, basePath: '/other' }], upstream))).toEqual(failed);
    // The first one may have run, so the second was the last.
    expect(worse.asked).toBe(2);
    expect(await failuresOf(bad.name)).toBe(bad.asked);
    expect(bad.asked).toBeGreaterThan(0);
  });

  it('fails with a timeout if the head is late or the body stops', async () => {
    const headless = await backend(() => {});
    const silent = await backend((_, response) => void response.writeHead(200).write('a'));
    for (const one of [headless, silent]) {
      const relay = wholeRelay();
      const answer = await relay.run(exchangeWith(relay, [one], impatient));
      expect(answer).toEqual({ kind: 'failed', failure: { kind: 'timeout' } });
    }
  });

  it('counts the silence of the backend only: a client that does not read costs no time', async () => {
    let open: ServerResponse | undefined;
    const hanging = await backend((_, response) => void response.writeHead(200).write('a'));
    const patient = await backend((_, response) => {
      open = response;
      response.writeHead(200).write('a');
    });
    const { heard, exchange } = streamFrom(patient, impatient, (parts) => parts > 2);
    exchange.start();
    await eventually(() => expect(heard).toEqual(['a']));
    // The pause begins with the next read, and what comes then waits in the socket.
    open!.write('b');
    await eventually(() => expect(heard).toEqual(['a', 'b']));
    open!.write('c');
    // Both of these begin later and end by the limit.
    for (let n = 0; n < 2; n++) expect(await ask(impatient, hanging)).toMatchObject({ failure: { kind: 'timeout' } });
    expect(heard).toEqual(['a', 'b']);
    exchange.resume();
    open!.end();
    await eventually(() => expect(heard).toEqual(['a', 'b', 'c', 'end']));
  });

  it('that is aborted before its connection is open leaves the backend usable for the next one', async () => {
    const slow = await backend((_, response) => void response.end('yes'));
    const relay = wholeRelay();
    const exchange = exchangeWith(relay, [slow], upstream);
    const answer = relay.run(exchange);
    relay.clientClosed();
    expect(await answer).toEqual({ kind: 'client_closed' });
    expect((await ask(upstream, slow)).kind).toBe('answer');
  });

  it('closes the backend’s connection at once when it is aborted', async () => {
    const turns: number[] = [];
    for (let n = 0; n < 3; n++) {
      let closed = false;
      const hanging = await backend((request) => void request.socket.on('close', () => (closed = true)));
      const relay = wholeRelay();
      void relay.run(exchangeWith(relay, [hanging], upstream));
      await eventually(() => expect(hanging.asked).toBe(1));
      relay.clientClosed();
      let taken = 0;
      for (; !closed && taken < MAX_TURNS; taken++) await new Promise(setImmediate);
      turns.push(taken);
    }
    // The least of three runs, as the kernel may be busy during one.
    expect(Math.min(...turns)).toBeLessThan(MAX_TURNS);
  });

  it.each([
    ['compressed without a request for it', { 'content-encoding': 'gzip' }],
    ['an HTML page', { 'content-type': 'text/html; charset=utf-8' }],
    ['an event stream instead of JSON', { 'content-type': 'text/event-stream' }],
  ])('rejects an answer that is %s', async (_, headers) => {
    const all = await Promise.all(
      [1, 2, 3].map(() => backend((_request, response) => void response.writeHead(200, headers).write('x'))),
    );
    expect(await ask(upstream, ...all)).toMatchObject({ kind: 'failed', failure: { kind: 'failed' } });
    expect(askedOf(all)).toBe(2);
  });

  it('keeps the backend’s message for the log, bounded and without its key', async () => {
    const words = `no: Bearer secret, secret, ${'no '.repeat(1_000)}`;
    const failing = await backend((_, response) => void response.writeHead(404).end(`{"detail":"${words}"}`));
    const answer = await ask(upstream, failing);
    const { reason } = (answer as { failure: { reason: string } }).failure;
    expect(reason).toMatch(/^status 404: no: Bearer \[removed\], \[removed\], /);
    expect(reason.length).toBeLessThan(400);
  });
});
