import { eventually } from '@tollgate/testing';
import { FAULT_STATUSES } from '../config/fault-rules';
import { readEvents, useSimulator } from '../use-simulator.fixture';

const messages = [{ role: 'user' as const, content: 'hi' }];
/** A backend that sends nothing for this time hangs. */
const SILENCE_MS = 200;

describe('faults', () => {
  const sim = useSimulator({
    models: {
      'fails-twice': { faults: [{ kind: 'status', status: 503, first: 2 }] },
      'fails-each-third': { faults: [{ kind: 'status', status: 500, every: 3 }] },
    },
  });
  const ask = (simulator: object, more: object = {}, init: RequestInit = {}) =>
    sim.post('/chat/completions', { model: 'm', messages, simulator, ...more }, init);
  const stream = async (faults: object[], more: object = {}) =>
    readEvents(await ask({ faults, answerTokens: 10 }, { stream: true, ...more }));
  const deltas = (events: string[]) =>
    events.filter((event) => event.includes('"content":') && !event.includes('"role"'));

  it.each(FAULT_STATUSES)('status %i has an OpenAI error body', async (status) => {
    const codes: Record<number, string> = {
      400: 'invalid_value',
      401: 'invalid_api_key',
      403: 'model_access_denied',
      404: 'model_not_found',
      429: 'rate_limit_exceeded',
      503: 'engine_overloaded',
    };
    const response = await ask({
      faults: [{ kind: 'status', status, ...(status === 429 ? { retryAfterSeconds: 7 } : {}) }],
    });
    expect(response.status).toBe(status);
    expect(response.headers.get('retry-after')).toBe(status === 429 ? '7' : null);
    expect(await response.json()).toEqual({
      error: {
        message: expect.stringMatching(/^simulator: /),
        type: expect.any(String),
        param: status === 400 ? 'messages' : null,
        code: codes[status] ?? null,
      },
    });
  });

  it('apply to the first requests of a model, or to each k-th, and a reset restarts the count', async () => {
    const statuses = async (model: string) => {
      const seen = [];
      for (let i = 0; i < 6; i++) seen.push((await sim.post('/chat/completions', { model, messages })).status);
      return seen;
    };
    expect(await statuses('fails-twice')).toEqual([503, 503, 200, 200, 200, 200]);
    sim.simulator.reset();
    expect(await statuses('fails-twice')).toEqual([503, 503, 200, 200, 200, 200]);
    expect(await statuses('fails-each-third')).toEqual([200, 200, 500, 200, 200, 500]);
  });

  it('of a request are counted over the requests with the same simulator field', async () => {
    const faults = [{ kind: 'status', status: 500, first: 1 }];
    const statuses = [];
    for (const tag of ['a', 'a', 'b', 'b']) statuses.push((await ask({ faults, tag })).status);
    expect(statuses).toEqual([500, 200, 500, 200]);
  });

  it('apply to embeddings and legacy completions as well', async () => {
    const simulator = { faults: [{ kind: 'status', status: 500 }] };
    expect((await sim.post('/embeddings', { model: 'm', input: 'x', simulator })).status).toBe(500);
    expect((await sim.post('/completions', { model: 'm', prompt: 'x', simulator })).status).toBe(500);
  });

  it.each([0, 1, 4])('cut closes a stream after %i chunks', async (afterChunks) => {
    const { events, error } = await stream([{ kind: 'cut', afterChunks }]);
    expect(error).not.toBeNull();
    expect(deltas(events)).toHaveLength(afterChunks);
    expect(events).not.toContain('[DONE]');
    await eventually(() =>
      expect(sim.simulator.stats()).toMatchObject({
        requestsCut: 1,
        requestsFinished: 0,
        openNow: 0,
        tokensWritten: afterChunks,
      }),
    );
  });

  it('cut closes a plain answer in the middle of its body', async () => {
    const response = await ask({ faults: [{ kind: 'cut' }] });
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
    await eventually(() => expect(sim.simulator.stats()).toMatchObject({ requestsCut: 1, openNow: 0 }));
  });

  it('hang reads the request and never answers', async () => {
    const leave = new AbortController();
    const asked = ask({ faults: [{ kind: 'hang' }] }, {}, { signal: leave.signal });
    await eventually(() => expect(sim.simulator.stats().requestsStarted).toBe(1));
    setTimeout(() => leave.abort(), SILENCE_MS);
    await expect(asked).rejects.toMatchObject({ name: 'AbortError' });
    await eventually(() =>
      expect(sim.simulator.stats()).toMatchObject({
        requestsStarted: 1,
        requestsAborted: 1,
        openNow: 0,
        tokensWritten: 0,
      }),
    );
  });

  it('hang stops sending after the given number of chunks, or in the middle of a plain body', async () => {
    const faults = [{ kind: 'hang', afterChunks: 3 }];
    const [leaveStream, leavePlain] = [new AbortController(), new AbortController()];
    const streamed = await ask({ faults }, { stream: true }, { signal: leaveStream.signal });
    let text = '';
    const reading = (async () => {
      for await (const bytes of streamed.body!) text += Buffer.from(bytes).toString();
    })();
    await eventually(() => expect(deltas(text.split('\n\n'))).toHaveLength(3));
    setTimeout(() => leaveStream.abort(), SILENCE_MS);
    await expect(reading).rejects.toMatchObject({ name: 'AbortError' });
    expect(deltas(text.split('\n\n'))).toHaveLength(3);
    const plain = await ask({ faults }, {}, { signal: leavePlain.signal });
    setTimeout(() => leavePlain.abort(), SILENCE_MS);
    await expect(plain.text()).rejects.toMatchObject({ name: 'AbortError' });
    await eventually(() =>
      expect(sim.simulator.stats()).toMatchObject({ requestsAborted: 2, openNow: 0, tokensWritten: 3 }),
    );
  });

  it('malformed makes one chunk invalid and leaves the others correct', async () => {
    const { events } = await stream([{ kind: 'malformed', atChunk: 4 }]);
    const bad = events.flatMap((event, i) => (isJson(event) || event === '[DONE]' ? [] : [i]));
    expect(bad).toEqual([4]);
    expect(events.at(-1)).toBe('[DONE]');
    const plain = await ask({ faults: [{ kind: 'malformed' }] });
    expect(isJson(await plain.text())).toBe(false);
  });

  it('missingUsage leaves usage out', async () => {
    const { events } = await stream([{ kind: 'missingUsage' }], { stream_options: { include_usage: true } });
    expect(
      events.filter((event) => event !== '[DONE]').every((event) => !(JSON.parse(event) as { usage: unknown }).usage),
    ).toBe(true);
    expect(await (await ask({ faults: [{ kind: 'missingUsage' }] })).json()).not.toHaveProperty('usage');
  });

  it('overrun reports more tokens than were used', async () => {
    expect(await (await ask({ faults: [{ kind: 'overrun', factor: 2.5 }], answerTokens: 11 })).json()).toMatchObject({
      usage: { prompt_tokens: 20, completion_tokens: 28, total_tokens: 48 },
    });
  });

  it('slowHeaders delays the status line', async () => {
    const startMs = performance.now();
    expect((await ask({ faults: [{ kind: 'slowHeaders', delayMs: 120 }] })).status).toBe(200);
    expect(performance.now() - startMs).toBeGreaterThan(115);
  });
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
