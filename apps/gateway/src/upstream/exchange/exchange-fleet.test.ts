import { createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { ServerResponse } from 'node:http';
import { metrics } from '@tollgate/runtime';
import { eventually } from '@tollgate/testing';
import type { CatalogModel } from '../../catalog/catalog';
import {
  type Answer,
  backend,
  backendAt,
  closeAll,
  exchangeOf,
  modelWith,
  upstreamWith,
  wholeRelay,
} from '../exchange.fixture';
import type { PlainAnswer } from './plain-answer';
import type { Upstream } from '../upstream';

const CALLS = 1_000;
const well: Answer = (_, response) => void response.end('yes');
const answering =
  (status: number): Answer =>
  (_, response) =>
    void response.writeHead(status).end('{}');
const failing = answering(500);
const upstream = upstreamWith({});
const held: Socket[] = [];
/** Accepts connections, and never answers the handshake of TLS: no connection is ever open. */
const mute = createServer((socket) => void held.push(socket.on('error', () => {})));
let muteUrl = '';

beforeAll(async () => {
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  muteUrl = `https://127.0.0.1:${(mute.address() as AddressInfo).port}`;
});

afterAll(async () => {
  await closeAll();
  for (const socket of held) socket.destroy();
  await new Promise((resolve) => mute.close(resolve));
});

const askModel = (model: CatalogModel, by: Upstream = upstream): Promise<PlainAnswer<Buffer>> => {
  const relay = wholeRelay();
  return relay.run(exchangeOf(model, relay, by));
};

async function callsOf(name: string, result: string): Promise<number> {
  const { values } = await metrics.getSingleMetric('tollgate_backend_calls_total')!.get();
  const found = values.find(({ labels }) => labels['backend'] === name && labels['result'] === result);
  return found?.value ?? 0;
}

describe('the backends of a model', () => {
  it.each([
    ['always fail', 500],
    ['have no money left for us', 402],
    ['cannot generate (TGI)', 424],
  ])('get at most 1 %% of the calls if they %s, and no client notices', async (_why, status) => {
    const [bad, good] = await Promise.all([backend(answering(status)), backend(well)]);
    const model = modelWith([bad, good]);
    for (let n = 0; n < CALLS; n++) expect((await askModel(model)).kind).toBe('answer');
    expect(bad.asked).toBeLessThanOrEqual(CALLS / 100);
    expect(good.asked).toBe(CALLS);
  });

  it('are not passed over for a 500 or a bad answer that the request itself may have caused', async () => {
    const answers = [failing, (...[, response]: Parameters<Answer>) => void response.end()];
    for (const answer of answers) {
      const bad = await backend(answer);
      bad.weight = 1e9;
      const model = modelWith([bad, await backend(well)]);
      const stays = async (mayBeAtFault: boolean) => {
        for (let n = 0; n < 10; n++) {
          const relay = wholeRelay();
          await relay.run(exchangeOf(model, relay, upstream, [], () => mayBeAtFault));
        }
        return bad.asked;
      };
      expect(await stays(true)).toBe(10);
      expect(await stays(false)).toBe(15);
    }
  });

  it('are called again after they failed', async () => {
    let answer = failing;
    const bad = await backend((request, response) => answer(request, response));
    const good = await backend(well);
    const model = modelWith([bad, good]);
    while (bad.asked < 5) await askModel(model);
    answer = well;
    await eventually(
      async () => {
        for (let n = 0; n < 20; n++) await askModel(model);
        expect(bad.asked).toBeGreaterThan(10);
      },
      { timeoutMs: 60_000 },
    );
  });

  it('that always fail are still asked if there is no other: a bad request cannot close a model', async () => {
    const all = await Promise.all([backend(failing), backend(failing)]);
    const model = modelWith(all);
    for (let n = 0; n < 30; n++) expect((await askModel(model)).kind).toBe('failed');
    expect(all[0].asked + all[1].asked).toBeGreaterThanOrEqual(30);
  });

  it('make one call wait for a connection that does not open, and no other', async () => {
    const impatient = upstreamWith({ connectTimeoutMs: 1_000 });
    const gone = backendAt(muteUrl, '/one');
    const good = await backend(well);
    const model = modelWith([gone, good]);
    await eventually(async () => {
      expect((await askModel(model, impatient)).kind).toBe('answer');
      expect(await callsOf(gone.name, 'unreachable')).toBe(1);
    });
    for (let n = 0; n < 100; n++) expect((await askModel(model, impatient)).kind).toBe('answer');
    expect(await callsOf(gone.name, 'unreachable')).toBe(1);
    const alone = modelWith([gone]);
    const answer = await askModel(alone, impatient);
    expect(answer).toMatchObject({ failure: { kind: 'busy', retryAfterSeconds: expect.any(Number) } });
    expect(await callsOf(gone.name, 'unreachable')).toBe(1);
  });

  it('are retried for a tenth of the requests and a small reserve at most', async () => {
    const all = await Promise.all([backend(failing), backend(failing)]);
    const model = modelWith(all);
    const calls = 400;
    const beganMs = performance.now();
    for (let n = 0; n < calls; n++) await askModel(model);
    const refilled = (performance.now() - beganMs) / 1_000;
    expect(all[0].asked + all[1].asked).toBeLessThanOrEqual(calls * 1.1 + 20 + refilled + 1);
  });

  it('tell the soonest Retry-After of all, also as a date', async () => {
    const busy = (retryAfter: () => string) =>
      backend((_, response) => void response.writeHead(429, { 'retry-after': retryAfter() }).end());
    const date = () => new Date(Date.now() + 600_000).toUTCString();
    const all = await Promise.all([busy(() => '1200'), busy(date), busy(() => '900')]);
    const { failure } = (await askModel(modelWith(all))) as { failure: { retryAfterSeconds: number } };
    expect(failure).toMatchObject({ kind: 'busy' });
    expect(failure.retryAfterSeconds).toBeGreaterThan(500);
    expect(failure.retryAfterSeconds).toBeLessThanOrEqual(600);
  });
});

describe('a model whose backends are full', () => {
  const hanging = async () => {
    const open: ServerResponse[] = [];
    const one = await backend((_, response) => void open.push(response));
    one.maxConcurrency = 2;
    return { one, open };
  };

  it('lets requests wait in order, and never exceeds the limit', async () => {
    const { one, open } = await hanging();
    const model = modelWith([one], { maxRequests: 10, maxWaitMs: 60_000 });
    const ended: number[] = [];
    const all = [1, 2, 3, 4, 5].map(async (n) => {
      expect((await askModel(model)).kind).toBe('answer');
      ended.push(n);
    });
    for (let answered = 0; answered < 5; answered++) {
      const running = Math.min(2, 5 - answered);
      await eventually(() => expect(open.length).toBe(running));
      expect(one.asked).toBe(Math.min(5, answered + 2));
      open.shift()!.end('yes');
      await eventually(() => expect(ended.length).toBe(answered + 1));
    }
    await Promise.all(all);
    expect(ended).toEqual([1, 2, 3, 4, 5]);
  });

  it('refuses what its queue has no room or no time for', async () => {
    const { one, open } = await hanging();
    const model = modelWith([one], { maxRequests: 1, maxWaitMs: 100 });
    const running = [askModel(model), askModel(model)];
    const late = askModel(model);
    expect(await askModel(model)).toMatchObject({ failure: { kind: 'busy' } });
    expect(await late).toMatchObject({ failure: { kind: 'busy' } });
    await eventually(() => expect(open.length).toBe(2));
    for (const response of open) response.end('yes');
    expect((await Promise.all(running)).map(({ kind }) => kind)).toEqual(['answer', 'answer']);
    expect(one.asked).toBe(2);
  });

  it('gives the place of a client that left to the next', async () => {
    const { one, open } = await hanging();
    one.maxConcurrency = 1;
    const model = modelWith([one], { maxRequests: 10, maxWaitMs: 60_000 });
    const relays = [1, 2, 3].map(() => wholeRelay());
    const answers = relays.map((relay) => relay.run(exchangeOf(model, relay, upstream)));
    await eventually(() => expect(open.length).toBe(1));
    // The second leaves the queue, the first its place.
    relays[1]!.clientClosed();
    relays[0]!.clientClosed();
    await eventually(() => expect(one.asked).toBe(2));
    open[1]!.end('yes');
    expect((await Promise.all(answers)).map(({ kind }) => kind)).toEqual(['client_closed', 'client_closed', 'answer']);
  });

  it('goes on with a backend that an operator enabled again', async () => {
    const one = await backend(well);
    const model = modelWith([one], { maxRequests: 10, maxWaitMs: 60_000 });
    upstream.fleet.drainOnly(new Set([one.name]));
    expect(await askModel(model)).toMatchObject({ failure: { kind: 'busy' } });
    upstream.fleet.drainOnly(new Set());
    expect((await askModel(model)).kind).toBe('answer');
  });
});
