import { connect } from 'node:net';
import { once } from 'node:events';
import { eventually, Standstill } from '@tollgate/testing';
import { startSimulator, type SimulatorStats } from '../index';
import { readEvents, useSimulator } from '../use-simulator.fixture';

const messages = [{ role: 'user' as const, content: 'hi' }];

describe('an exchange', () => {
  const sim = useSimulator({
    models: { slow: { tokensPerSecond: 100, answerTokens: 1_000 }, endless: { answerTokens: 1_000_000 } },
  });
  const ask = (simulator: object, more: object = {}) =>
    sim.post('/chat/completions', { model: 'm', messages, simulator, ...more });

  it('is counted from its start to its end', async () => {
    await (await ask({ answerTokens: 12 })).json();
    await readEvents(await ask({ answerTokens: 12 }, { stream: true }));
    await eventually(async () => {
      const stats = (await (await fetch(new URL('/_simulator/stats', sim.simulator.url))).json()) as SimulatorStats;
      expect(stats).toEqual({
        requestsStarted: 2,
        requestsFinished: 2,
        requestsAborted: 0,
        requestsCut: 0,
        openNow: 0,
        tokensWritten: 24,
        tokensAfterAbort: 0,
      });
    });
    await fetch(new URL('/_simulator/reset', sim.simulator.url), { method: 'POST' });
    expect(sim.simulator.stats()).toMatchObject({ requestsStarted: 0, tokensWritten: 0 });
  });

  it('counts all generated tokens for its metrics, also those of cancelled requests and under a fault', async () => {
    const counted = async (model: string) => {
      const text = await (await fetch(new URL('/metrics', sim.simulator.url))).text();
      const of = (name: string) =>
        Number(new RegExp(`^${name}\\{model_name="${model}"\\} (\\d+)$`, 'm').exec(text)?.[1]);
      return { prompt: of('simulator_prompt_tokens_total'), generation: of('simulator_generation_tokens_total') };
    };
    const faults = [{ kind: 'overrun', factor: 0.5 }];
    await (await ask({ answerTokens: 30, faults }, { model: 'counted' })).json();
    await readEvents(await ask({ answerTokens: 20 }, { model: 'counted', stream: true }));
    await ask({ faults: [{ kind: 'status', status: 503 }] }, { model: 'counted' });
    expect(await counted('counted')).toEqual({ prompt: 2 * 8, generation: 50 });
    sim.simulator.reset();
    expect(await counted('counted')).toEqual({ prompt: 2 * 8, generation: 50 });

    const leaving = new AbortController();
    const paced = { tokensPerSecond: 10_000, answerTokens: 100_000 };
    const asked = sim.post(
      '/chat/completions',
      { model: 'left', messages, simulator: paced },
      { signal: leaving.signal },
    );
    await eventually(async () => expect(await counted('left')).toMatchObject({ prompt: 8 }));
    leaving.abort();
    await expect(asked).rejects.toThrow();
    await eventually(async () => expect((await counted('left')).generation).toBeGreaterThan(0));
  });

  it('stops generating as soon as the client leaves a stream', async () => {
    const standstill = new Standstill();
    const stream = await sim.openai.chat.completions.create({ model: 'slow', messages, stream: true });
    const iterator = stream[Symbol.asyncIterator]();
    for (let chunks = 0; chunks < 5; chunks++) await iterator.next();
    await iterator.return!();
    await eventually(() =>
      expect(sim.simulator.stats()).toMatchObject({ requestsAborted: 1, openNow: 0, tokensAfterAbort: 0 }),
    );
    // It writes 100 a second. After a standstill, it writes the tokens of that time at once.
    expect(sim.simulator.stats().tokensWritten - standstill.ms / 10).toBeLessThan(200);
    standstill.end();
  });

  it.each([
    ['a plain answer', {}],
    ['a stream', { stream: true }],
  ])('waits for the next token of %s, even if that is beyond the longest time of a timer', async (_, more) => {
    const timers = jest.spyOn(globalThis, 'setTimeout');
    const leaving = new AbortController();
    try {
      const simulator = { tokensPerSecond: 1e-300 };
      const asked = sim.post(
        '/chat/completions',
        { model: 'm', messages, simulator, ...more },
        { signal: leaving.signal },
      );
      asked.catch(() => {});
      // Node runs a timer at once if its time is longer.
      const waits = () => timers.mock.calls.map(([, delayMs]) => delayMs ?? 0).filter((delayMs) => delayMs > 1e9);
      await eventually(() => expect(waits()).toEqual([2_147_483_647]));
    } finally {
      timers.mockRestore();
      leaving.abort();
    }
  });

  it('counts a client that leaves before anything was written as aborted', async () => {
    const abort = new AbortController();
    const asked = sim.post(
      '/chat/completions',
      { model: 'm', messages, simulator: { firstTokenDelayMs: 60_000 } },
      { signal: abort.signal },
    );
    await eventually(() => expect(sim.simulator.stats().openNow).toBe(1));
    abort.abort();
    await expect(asked).rejects.toThrow();
    await eventually(() =>
      expect(sim.simulator.stats()).toMatchObject({ requestsAborted: 1, openNow: 0, tokensWritten: 0 }),
    );
  });

  it('stops generating while a client does not read, and ends when the client leaves', async () => {
    const { hostname, port } = new URL(sim.simulator.url);
    const socket = connect(Number(port), hostname);
    const body = JSON.stringify({ model: 'endless', messages, stream: true });
    socket.write(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await once(socket, 'readable');
    // Three equal readings in a row, because a busy machine may generate nothing between two readings.
    let before = -1;
    let equal = 0;
    await eventually(
      () => {
        const { tokensWritten } = sim.simulator.stats();
        equal = tokensWritten === before ? equal + 1 : 1;
        before = tokensWritten;
        expect(equal).toBe(3);
      },
      { everyMs: 100 },
    );
    expect(before).toBeGreaterThan(0);
    expect(before).toBeLessThan(1_000_000);
    socket.destroy();
    await eventually(() =>
      expect(sim.simulator.stats()).toMatchObject({ requestsAborted: 1, openNow: 0, tokensWritten: before }),
    );
  });

  it('obeys the speed and the first-token delay, streamed and plain', async () => {
    const pace = { answerTokens: 21, tokensPerSecond: 200, firstTokenDelayMs: 1_000 };
    for (const stream of [true, false]) {
      const standstill = new Standstill();
      const startMs = performance.now();
      const response = await ask(pace, { stream });
      const headersMs = performance.now() - startMs - standstill.ms;
      await response.text();
      const tookMs = performance.now() - startMs;
      standstill.end();
      expect(tookMs).toBeGreaterThan(1_095);
      expect(tookMs - standstill.ms).toBeLessThan(2_700);
      if (stream) expect(headersMs).toBeLessThan(1_000);
    }
  });

  it('serves many paced streams at once and completes each', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, async (_, i) =>
        readEvents(await ask({ answerTokens: 20, tokensPerSecond: 500, tag: String(i) }, { stream: true })),
      ),
    );
    expect(answers.every(({ events, error }) => error === null && events.length === 23)).toBe(true);
    await eventually(() =>
      expect(sim.simulator.stats()).toMatchObject({ requestsFinished: 50, tokensWritten: 1_000, openNow: 0 }),
    );
  });
});

describe('ending', () => {
  it('takes no further connections, and lets open requests end, also beside an idle connection', async () => {
    const simulator = await startSimulator();
    const ask = (answerTokens: number) =>
      fetch(`${simulator.url}/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'm', messages, stream: true, simulator: { answerTokens, tokensPerSecond: 500 } }),
      });
    const running = await ask(200);
    await (await ask(1)).text();
    const ended = simulator.end();
    await expect(fetch(`${simulator.url}/models`)).rejects.toThrow();
    const { events, error } = await readEvents(running);
    expect([error, events.length, events.at(-1)]).toEqual([null, 203, '[DONE]']);
    await ended;
    expect(simulator.stats()).toMatchObject({ requestsFinished: 2, openNow: 0 });
  });
});

describe('closing', () => {
  it('cuts hanging requests and frees the port', async () => {
    const simulator = await startSimulator();
    const asked = fetch(`${simulator.url}/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ model: 'm', messages, simulator: { faults: [{ kind: 'hang' }] } }),
    });
    await Promise.all([
      expect(asked).rejects.toThrow(),
      eventually(() => expect(simulator.stats().openNow).toBe(1)).then(() => simulator.close()),
    ]);
    await expect(fetch(`${simulator.url}/models`)).rejects.toThrow();
  });
});
