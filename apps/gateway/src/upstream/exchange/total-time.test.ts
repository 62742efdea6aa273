import { eventually } from '@tollgate/testing';
import type { ServerResponse } from 'node:http';
import type { CatalogModel } from '../../catalog/catalog';
import {
  type Answer,
  backend,
  closeAll,
  type CountingBackend,
  exchangeOf,
  modelWith,
  streamFrom,
  upstreamWith,
  useJumpingClock,
  wholeRelay,
} from '../exchange.fixture';
import { TotalTime } from './total-time';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const QUEUE = { maxRequests: 10, maxWaitMs: 60_000 };

const jump = useJumpingClock();
const upstream = upstreamWith({});
afterAll(closeAll);

const well: Answer = (_, response) => void response.end('yes');
/** Answers 504 after `ms`. */
const late =
  (ms: number): Answer =>
  (_, response) => {
    jump(ms);
    response.writeHead(504).end('{}');
  };

async function backendWithin(totalMs: number, answer: Answer): Promise<CountingBackend> {
  const one = await backend(answer);
  one.timeouts = { totalMs };
  return one;
}

const ask = (model: CatalogModel, fallbacks: CatalogModel[] = []) => {
  const relay = wholeRelay();
  const exchange = exchangeOf(model, relay, upstream, fallbacks);
  return { relay, exchange, answer: relay.run(exchange) };
};

/** What the circuit breaker of the model's only backend hears. */
function toldOf(model: CatalogModel) {
  return jest.spyOn(upstream.fleet.poolOf(model).backends[0]!.breaker, 'ended');
}

describe('the total time of a request', () => {
  it('begins with its first attempt: a wait in the queue takes nothing of it', async () => {
    const open: ServerResponse[] = [];
    const one = await backendWithin(HOUR_MS, (_, response) => void open.push(response));
    one.maxConcurrency = 1;
    const model = modelWith([one], QUEUE);
    const told = toldOf(model);
    const running = ask(model);
    const waiting = ask(model);
    await eventually(() => expect(open).toHaveLength(1));
    jump(2 * HOUR_MS);
    running.relay.clientClosed();
    await eventually(() => expect(open).toHaveLength(2));
    open[1]!.end('yes');
    expect((await waiting.answer).kind).toBe('answer');
    expect(told.mock.calls.map(([result]) => result)).toEqual(['succeeded']);
  });

  it('sends nothing to a fallback that has no time left, which neither hears of it nor takes a retry', async () => {
    const slow = await backendWithin(DAY_MS, late(2 * HOUR_MS));
    const [hasty, good] = [await backendWithin(HOUR_MS, well), await backendWithin(DAY_MS, well)];
    const [model, tooLate] = [modelWith([slow]), modelWith([hasty])];
    const [told, takes] = [toldOf(tooLate), jest.spyOn(upstream.fleet.poolOf(model).budget, 'take')];
    expect(await ask(model, [tooLate]).answer).toEqual({ kind: 'failed', failure: { kind: 'timeout' } });
    expect(takes).not.toHaveBeenCalled();
    expect((await ask(model, [tooLate, modelWith([good])]).answer).kind).toBe('answer');
    expect([hasty.asked, good.asked, told.mock.calls]).toEqual([0, 1, []]);
  });

  it('sends nothing to a backend that has no time left, while another one has', async () => {
    const slow = await backendWithin(DAY_MS, late(2 * HOUR_MS));
    const [hasty, good] = [await backendWithin(HOUR_MS, well), await backendWithin(DAY_MS, well)];
    slow.weight = 1e18;
    hasty.weight = 1e9;
    expect((await ask(modelWith([slow, hasty, good])).answer).kind).toBe('answer');
    expect([slow.asked, hasty.asked, good.asked]).toEqual([1, 0, 1]);
  });

  it('sends nothing to a fallback whose place came too late', async () => {
    const open: ServerResponse[] = [];
    const full = await backendWithin(HOUR_MS, (_, response) => void open.push(response));
    full.maxConcurrency = 1;
    const busy = await backendWithin(DAY_MS, (_, response) => void response.writeHead(429).end());
    const other = modelWith([full], QUEUE);
    const running = ask(other);
    await eventually(() => expect(open).toHaveLength(1));
    const { answer } = ask(modelWith([busy]), [other]);
    await eventually(() => expect(upstream.fleet.poolOf(other).queue.length).toBe(1));
    jump(2 * HOUR_MS);
    running.relay.clientClosed();
    expect(await answer).toMatchObject({ failure: { kind: 'busy' } });
    expect(full.asked).toBe(1);
  });

  it('that earlier attempts took says nothing about the backend that is asked last', async () => {
    const slow = await backendWithin(DAY_MS, late(2 * HOUR_MS));
    const short = await backendWithin(3 * HOUR_MS, (_, response) => {
      jump(2 * HOUR_MS);
      response.end('yes');
    });
    const other = modelWith([short]);
    const told = toldOf(other);
    expect(await ask(modelWith([slow]), [other]).answer).toEqual({ kind: 'failed', failure: { kind: 'timeout' } });
    expect([short.asked, told.mock.calls]).toEqual([1, []]);
    short.timeouts = { totalMs: HOUR_MS };
    expect(await ask(other).answer).toEqual({ kind: 'failed', failure: { kind: 'timeout' } });
    expect(told.mock.calls.map(([result]) => result)).toEqual(['failed']);
  });

  it.each([
    ['says nothing about a backend that is silent until its end', 100, {}, []],
    ['hides no backend that is silent for longer than its own limit', HOUR_MS, { firstByteMs: 50 }, ['failed']],
  ])('that earlier attempts took %s', async (_, leftMs, own, results) => {
    jump(0);
    const slow = await backendWithin(DAY_MS, late(2 * HOUR_MS));
    const silent = await backend(() => {});
    silent.timeouts = { totalMs: 2 * HOUR_MS + leftMs, ...own };
    const other = modelWith([silent]);
    const told = toldOf(other);
    const { exchange, answer } = ask(modelWith([slow]), [other]);
    expect(await answer).toEqual({ kind: 'failed', failure: { kind: 'timeout' } });
    const failed = [slow, silent].map(({ name }) => ({ backend: name, why: 'timeout' }));
    expect([exchange.record.failed, told.mock.calls.map(([result]) => result)]).toEqual([failed, results]);
  });

  it('leaves no time for a new connection once it is over', async () => {
    const used = new WeakSet<object>();
    const closing = await backendWithin(MINUTE_MS, (request, response) => {
      if (!used.has(request.socket)) {
        used.add(request.socket);
        return void response.end('yes');
      }
      jump(2 * MINUTE_MS);
      request.socket.destroy();
    });
    const model = modelWith([closing]);
    expect((await ask(model).answer).kind).toBe('answer');
    expect(await ask(model).answer).toMatchObject({ failure: { kind: 'failed' } });
    expect(closing.asked).toBe(2);
  });

  it('ends a stream after a day by default, also one that its client reads slowly', async () => {
    let open: ServerResponse | undefined;
    const patient = await backend((_, response) => void (open = response).writeHead(200).write('a'));
    const { heard, exchange } = streamFrom(patient, upstream, () => false);
    const later = (jumpMs: number, part: string) => {
      jump(jumpMs);
      open!.write(part);
      exchange.resume();
    };
    exchange.start();
    await eventually(() => expect(heard).toEqual(['a']));
    later(DAY_MS - HOUR_MS, 'b');
    await eventually(() => expect(heard).toEqual(['a', 'b']));
    later(2 * HOUR_MS, 'c');
    await eventually(() => expect(heard).toEqual(['a', 'b', 'timeout']));
    await eventually(() => expect(open!.closed).toBe(true));
  });

  it('has no end without a limit, and each backend its own end from the first attempt on', () => {
    const within = (totalMs?: number) => ({ timeouts: { totalMs } }) as Parameters<TotalTime['begin']>[0];
    const time = new TotalTime(Infinity);
    expect([time.isOver, time.isOverFor(within(1), 5_000)]).toEqual([false, false]);
    time.begin(within(), 1_000);
    expect([time.isOver, time.leftMs, time.isShort]).toEqual([false, Infinity, false]);
    expect([999, 1_000].map((totalMs) => time.isOverFor(within(totalMs), 2_000))).toEqual([true, true]);
    expect(time.isOverFor(within(1_001), 2_000)).toBe(false);
    for (const [totalMs, leftMs, isShort] of [
      [3_000, 2_000, false],
      [2_000, 1_000, false],
      [1_999, 999, true],
      [1_000.5, 1, true],
    ] as const) {
      time.begin(within(totalMs), 2_000);
      expect([time.leftMs, time.isShort]).toEqual([leftMs, isShort]);
    }
  });
});
