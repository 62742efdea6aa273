import {
  type Answer,
  ask,
  askedOf,
  backend,
  closeAll,
  closedOrigin,
  exchangeWith,
  upstreamWith,
  wholeRelay,
} from '../exchange.fixture';
import type { Upstream } from '../upstream';

const upstream = upstreamWith({});
/** A backend that works for WORK_MS before it closes has certainly worked for longer than STALE_CLOSE_MS. */
const STALE_CLOSE_MS = 20;
const WORK_MS = 60;
const strict = upstreamWith({ staleCloseMs: STALE_CLOSE_MS });
afterAll(closeAll);

const status =
  (code: number): Answer =>
  (_, response) =>
    response.writeHead(code).end('{"error":{"message":"no"}}');

const busyAfterWork: Answer = (request, response) => void setTimeout(() => status(503)(request, response), WORK_MS);

describe('an exchange', () => {
  it('that no backend has begun asks up to three backends, each once', async () => {
    const busy = await Promise.all([503, 429, 503, 429, 503].map((code) => backend(status(code))));
    expect(await ask(upstream, ...busy)).toMatchObject({ failure: { kind: 'busy' } });
    expect([askedOf(busy), Math.max(...busy.map(({ asked }) => asked))]).toEqual([3, 1]);
    const gone = { ...busy[0]!, origin: await closedOrigin(), weight: 1e9 };
    const well = await backend((_, response) => response.end('yes'));
    expect(await ask(upstream, gone, { ...gone, basePath: '/other' }, well)).toMatchObject({ kind: 'answer' });
    expect(well.asked).toBe(1);
  });

  it('that a backend may have begun asks one other backend, whatever that one answers', async () => {
    for (const codes of [
      [500, 500, 500],
      [502, 501, 500, 500],
      [500, 503, 503],
      [500, 429, 429],
    ]) {
      const others = await Promise.all(codes.map((code) => backend(status(code))));
      const first = others.shift()!;
      first.weight = 1e9;
      expect((await ask(upstream, first, ...others)).kind).toBe('failed');
      expect([first.asked, askedOf(others)]).toEqual([1, 1]);
    }
    const alone = await backend(status(500));
    expect((await ask(upstream, alone, { ...alone }, { ...alone, model: 'other' })).kind).toBe('failed');
    expect(alone.asked).toBe(1);
  });

  it('asks as many others as its failure allows: none, one after work, or all that refuse us', async () => {
    for (const [code, kind, asked] of [
      [400, 'refused', 1],
      [422, 'refused', 1],
      [413, 'too_large', 1],
      [418, 'failed', 1],
      [504, 'timeout', 2],
      [408, 'timeout', 2],
      [424, 'failed', 2],
      [404, 'failed', 3],
      [401, 'failed', 3],
      [402, 'failed', 3],
      [410, 'failed', 3],
      [302, 'failed', 3],
    ] as const) {
      const all = await Promise.all([1, 2, 3].map(() => backend(status(code))));
      expect(await ask(upstream, ...all)).toMatchObject({ kind: 'failed', failure: { kind } });
      expect([code, askedOf(all)]).toEqual([code, asked]);
    }
  });

  it.each([true, false])(
    'whose connection is closed after work asks one other backend (kept connection: %s)',
    async (kept) => {
      const answered = new WeakSet<object>();
      const dropping = () =>
        backend((request, response) => {
          if (!kept || answered.has(request.socket)) return void setTimeout(() => request.socket.destroy(), WORK_MS);
          answered.add(request.socket);
          response.end('yes');
        });
      for (const count of [1, 2, 3]) {
        const all = await Promise.all(Array.from({ length: count }, dropping));
        if (kept) for (const one of all) expect((await ask(strict, one)).kind).toBe('answer');
        const before = askedOf(all);
        expect(await ask(strict, ...all)).toMatchObject({ kind: 'failed', failure: { kind: 'failed' } });
        expect(askedOf(all) - before).toBe(Math.min(count, 2));
      }
    },
  );

  it('with a 503 after work asks one other backend, as the engine may have begun and died', async () => {
    const all = await Promise.all(Array.from({ length: 4 }, () => backend(busyAfterWork)));
    expect(await ask(strict, ...all)).toMatchObject({ failure: { kind: 'busy' } });
    expect(askedOf(all)).toBe(2);
    const well = await backend((_, response) => response.end('yes'));
    all[0]!.weight = 1e9;
    expect((await ask(strict, all[0]!, well)).kind).toBe('answer');
  });

  it('over a kept connection that closes at once is repeated exactly once', async () => {
    let answers = 1;
    const closing = await backend((request, response) => {
      if (answers-- > 0) response.end('yes');
      else request.socket.destroy();
    });
    expect((await ask(upstream, closing)).kind).toBe('answer');
    expect(await ask(upstream, closing)).toMatchObject({ kind: 'failed' });
    expect(closing.asked).toBe(3);
    // A new connection that closes at once is not stale.
    expect(await ask(upstream, closing)).toMatchObject({ kind: 'failed' });
    expect(closing.asked).toBe(4);
  });

  it('lists the backends that may have begun the request in the order asked, without those that refused', async () => {
    const begunAt = (...answers: Answer[]) => begunBy(upstream, ...answers);
    const begunBy = async (by: Upstream, ...answers: Answer[]) => {
      const backends = await Promise.all(answers.map((answer) => backend(answer)));
      const relay = wholeRelay();
      const exchange = exchangeWith(relay, backends, by);
      await relay.run(exchange);
      const asked = new Map(backends.map((one, index) => [one.name, index]));
      return exchange.record.begun.map((name) => asked.get(name));
    };
    const answer: Answer = (_, response) => void response.end('yes');
    expect(await begunAt(answer)).toEqual([0]);
    for (const code of [400, 401, 402, 404, 429, 503]) expect(await begunAt(status(code))).toEqual([]);
    for (const code of [424, 500]) expect(await begunAt(status(code))).toEqual([0]);
    expect((await begunAt(status(500), status(500))).sort()).toEqual([0, 1]);
    expect(await begunAt((_, response) => void response.destroy())).toEqual([0]);
    expect((await begunBy(strict, busyAfterWork, busyAfterWork, busyAfterWork)).length).toBe(2);
  });

  it('lists the attempts that failed in the order asked, by status or code, without words of the backend', async () => {
    const [busy, broken] = [await backend(status(429)), await backend(status(500))];
    const gone = { ...(await backend(status(500))), origin: await closedOrigin(), name: 'gone', weight: 1e9 };
    const failedBy = async (...backends: Parameters<typeof exchangeWith>[1]) => {
      const relay = wholeRelay();
      const exchange = exchangeWith(relay, backends, upstream);
      await relay.run(exchange);
      return exchange.record.failed;
    };
    expect(await failedBy(gone, { ...broken, weight: 1e-9 })).toEqual([
      { backend: 'gone', why: 'failed', code: 'ECONNREFUSED' },
      { backend: broken.name, why: 'failed', status: 500 },
    ]);
    expect(await failedBy(busy)).toEqual([{ backend: busy.name, why: 'busy' }]);
    expect(await failedBy(await backend((_, response) => void response.end('yes')))).toBeNull();
  });

  it('asks one other backend after an answer that was cut, unless a part of it has reached the client', async () => {
    const cut: Answer = (_, response) => {
      response.writeHead(200).write('a');
      setImmediate(() => response.destroy());
    };
    const all = await Promise.all([1, 2, 3].map(() => backend(cut)));
    expect(await ask(upstream, ...all)).toMatchObject({ kind: 'failed', failure: { kind: 'failed' } });
    expect(askedOf(all)).toBe(2);
    const relay = wholeRelay();
    relay.mayRestart = () => false;
    expect((await relay.run(exchangeWith(relay, all, upstream))).kind).toBe('failed');
    expect(askedOf(all)).toBe(3);
  });

  it('takes the whole answer of the other backend, and nothing of one that was cut or empty', async () => {
    const well: Answer = (_, response) => void response.end('whole');
    const cut: Answer = (_, response) => {
      response.writeHead(200).write('a part');
      setImmediate(() => response.destroy());
    };
    for (const bad of [cut, (_: unknown, response: { end(): unknown }) => void response.end()] as Answer[]) {
      const [first, second] = await Promise.all([backend(bad), backend(well)]);
      first.weight = 1e9;
      expect(await ask(upstream, first, second)).toEqual({ kind: 'answer', answer: Buffer.from('whole') });
      expect([first.asked, second.asked]).toEqual([1, 1]);
    }
  });

  it('asks one other backend if the first byte is late, within one limit for both', async () => {
    const impatient = upstreamWith({ timeoutMs: 400 });
    const silent: Answer = () => {};
    const all = await Promise.all([silent, silent, silent].map((answer) => backend(answer)));
    expect(await ask(impatient, ...all)).toEqual({ kind: 'failed', failure: { kind: 'timeout' } });
    expect(askedOf(all)).toBe(2);
    const late = await backend(silent);
    late.timeouts = { totalMs: 300 };
    const well = await backend((_, response) => response.end('yes'));
    late.weight = 1e9;
    expect(await ask(impatient, late, well)).toEqual({ kind: 'failed', failure: { kind: 'timeout' } });
    expect(well.asked).toBe(0);
  });

  it('is repeated on a new connection if the backend had closed the kept one', async () => {
    const used = new WeakSet<object>();
    const closing = await backend((request, response) => {
      if (used.has(request.socket)) request.socket.destroy();
      else response.end('yes');
      used.add(request.socket);
    });
    expect((await ask(upstream, closing)).kind).toBe('answer');
    expect((await ask(upstream, closing)).kind).toBe('answer');
    expect(closing.asked).toBe(3);
  });
});
