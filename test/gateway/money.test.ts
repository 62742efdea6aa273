import { costNanos, type UsageEvent } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { readEvents } from '../../apps/simulator/src/use-simulator.fixture';
import { LOCKED_WITHIN_MS, lockOnceHeld } from './streams/locked-stream';
import { reportedUsageTests } from './answers/reported-usage.part';
import { type Caller, expectSettledAt, useGateway } from './use-gateway';

const gateway = useGateway({ simulator: { defaults: { answerTokens: 200 } } });
const messages = [{ role: 'user', content: 'Say something about gateways.' }];
/** Time from the client's leaving to the backend's stop. */
const MAX_STOP_MS = 100;
/** After a longer stall of the event loop that client, gateway and simulator share, the time of a round is no proof. */
const MAX_STALL_MS = 20;
const MAX_ROUNDS = 20;

const chat = (caller: Caller, fields: object = {}, simulator: object = {}, init: RequestInit = {}) =>
  gateway.post('/v1/chat/completions', { model: 'small', messages, simulator, ...fields }, caller, init);

/**
 * Lets a client leave, and expects that the backend is stopped in time. Repeats a round in which the event loop
 * stalled. `arrive` begins a request and resolves with a controller that ends it.
 */
async function expectStopInTime(arrive: () => Promise<AbortController>): Promise<void> {
  for (let round = 1; ; round++) {
    const leave = await arrive();
    const stalls = monitorEventLoopDelay({ resolution: 1 });
    stalls.enable();
    leave.abort();
    const limits = { timeoutMs: MAX_STOP_MS, everyMs: 5 };
    const late = await eventually(() => expect(gateway.simulator.stats().openNow).toBe(0), limits).then(
      () => null,
      (error: Error) => error,
    );
    // So that the monitor also notices a stall that has just ended.
    await setTimeout(2);
    stalls.disable();
    if (late === null) return;
    if (stalls.max / 1e6 <= MAX_STALL_MS || round === MAX_ROUNDS) throw late;
    await eventually(() => expect(gateway.simulator.stats().openNow).toBe(0));
  }
}

/** The fields of an answer that these tests read. */
interface Answer {
  usage: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details?: object };
  error?: object;
}

const readJson = async (response: Response) => (await response.json()) as Answer;

/** The prompt's tokens, as the backend counts them. */
async function promptTokens(): Promise<number> {
  const answer = await chat(await gateway.caller(), { max_tokens: 1 });
  return (await readJson(answer)).usage.prompt_tokens;
}

/** Chat chunks of the events of a stream, without `[DONE]`. */
function parse(events: string[]): { text: string; last: Record<string, never>; done: boolean } {
  const chunks = events.filter((event) => event.startsWith('{')).map((event) => JSON.parse(event));
  return {
    text: chunks.map((chunk) => chunk.choices?.[0]?.delta?.content ?? '').join(''),
    last: chunks.at(-1),
    done: events.at(-1) === '[DONE]',
  };
}

const expectSettled = (caller: Caller, nanos: bigint) => expectSettledAt(gateway, caller, nanos);
const rated = (event: UsageEvent) => costNanos(event, event.price);

describe('credit for exactly 20 requests', () => {
  it.each([
    ['plain', false],
    ['streamed', true],
  ])('gives exactly 20 answers to 400 requests, 64 of them at once (%s)', async (_, stream) => {
    const cost = BigInt((await promptTokens()) * 1_000 + 40 * 2_000);
    const caller = await gateway.caller({ nanos: cost * 20n });
    // The first request reads the key from the store, so that 64 requests do not do it at once.
    expect((await caller.openai.models.list()).data).not.toHaveLength(0);
    const statuses: Record<string, number> = {};
    let left = 400;
    const fire = async () => {
      while (left-- > 0) {
        const answer = await chat(caller, { max_tokens: 40, stream }, { firstTokenDelayMs: 5 });
        const text = await answer.text();
        const name = answer.status === 200 ? '200' : JSON.parse(text).error.code;
        statuses[name] = (statuses[name] ?? 0) + 1;
      }
    };
    await Promise.all(Array.from({ length: 64 }, fire));
    expect(statuses['200']).toBe(20);
    expect(Object.keys(statuses).filter((name) => !['200', 'credit_held', 'credit_exhausted'].includes(name))).toEqual(
      [],
    );
    await expectSettled(caller, cost * 20n);
  });
});

describe('when the credit ends', () => {
  it('a stream ends normally, with less than one token of credit left', async () => {
    const prompt = await promptTokens();
    const credit = BigInt(prompt * 1_000 + 1_500 * 2_000 + 700);
    const caller = await gateway.caller({ nanos: credit });
    const { events } = await readEvents(await chat(caller, { stream: true }, { answerTokens: 4_000 }));
    const { last, done } = parse(events);
    expect(done).toBe(true);
    expect(last).toMatchObject({
      choices: [{ index: 0, delta: {}, finish_reason: 'length' }],
      usage: { prompt_tokens: prompt, completion_tokens: 1_500 },
    });
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({
      outcome: 'credit_ended',
      estimated: true,
      completionTokens: 1_500,
      overrunNanos: '0',
    });
    await expectSettled(caller, credit - 700n);
    await eventually(() => expect(gateway.simulator.stats().openNow).toBe(0));
  });

  it('a plain answer is clamped to the credit', async () => {
    const prompt = await promptTokens();
    const caller = await gateway.caller({ nanos: BigInt(prompt * 1_000 + 10 * 2_000) });
    const answer = await readJson(await chat(caller, { max_tokens: 100 }));
    expect(answer).toMatchObject({ choices: [{ finish_reason: 'length' }], usage: { completion_tokens: 10 } });
    const refused = await chat(caller);
    expect([refused.status, (await readJson(refused)).error]).toEqual([
      402,
      { message: expect.any(String), type: 'billing_error', param: null, code: 'credit_exhausted' },
    ]);
    expect(refused.headers.get('retry-after')).toBeNull();
  });

  it('a stream is extended while it runs, and its unused credit is released', async () => {
    const caller = await gateway.caller();
    const { events } = await readEvents(await chat(caller, { stream: true }, { answerTokens: 3_000 }));
    const { last } = parse(events);
    expect(last).toMatchObject({ choices: [{ finish_reason: 'stop' }], usage: { completion_tokens: 3_000 } });
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ outcome: 'complete', estimated: false });
    await expectSettled(caller, rated(event!));
  });
});

describe('a backend that breaks off', () => {
  it.each([
    ['cut', { kind: 'cut', afterChunks: 7 }, 7],
    ['malformed', { kind: 'malformed', atChunk: 6 }, 5],
  ])(
    'in the middle of a stream (%s) causes an error event and [DONE], and exactly the delivered tokens are charged',
    async (_, fault, delivered) => {
      const caller = await gateway.caller();
      const { events } = await readEvents(await chat(caller, { stream: true }, { faults: [fault] }));
      expect(JSON.parse(events.at(-2)!)).toEqual({
        error: { message: expect.any(String), type: 'upstream_error', param: null, code: 'upstream_error' },
      });
      expect(events.at(-1)).toBe('[DONE]');
      const [event] = await gateway.events(caller.tenantId, 1);
      expect(event).toMatchObject({
        outcome: 'upstream_error',
        estimated: true,
        completionTokens: delivered,
        promptTokens: await promptTokens(),
      });
      await expectSettled(caller, rated(event!));
    },
  );

  it.each([
    ['a cut before the first token of a stream', true, { kind: 'cut', afterChunks: 0 }, 502],
    ['a cut in the middle of a plain answer', false, { kind: 'cut', afterChunks: 3 }, 502],
    ['a plain answer that is not JSON', false, { kind: 'malformed' }, 502],
    ['status 500', true, { kind: 'status', status: 500 }, 502],
  ])('before it delivered anything (%s) costs nothing', async (_, stream, fault, status) => {
    const caller = await gateway.caller();
    const answer = await chat(caller, { stream }, { faults: [fault] });
    expect(answer.status).toBe(status);
    expect(await answer.text()).toContain('upstream_error');
    await expectSettled(caller, 0n);
  });

  it.each([true, false])('or reports no usage (stream: %s) is counted by the gateway, and marked', async (stream) => {
    const caller = await gateway.caller();
    const answer = await chat(caller, { stream, max_tokens: 50 }, { faults: [{ kind: 'missingUsage' }] });
    const text = await answer.text();
    expect(text).toContain('"completion_tokens":50');
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({
      outcome: 'complete',
      estimated: true,
      completionTokens: 50,
      promptTokens: await promptTokens(),
    });
  });
});

describe('a client that leaves', () => {
  it('in the middle of a stream pays for the delivered tokens, and the backend is stopped within 100 ms', async () => {
    let caller!: Caller;
    await expectStopInTime(async () => {
      caller = await gateway.caller();
      gateway.simulator.reset();
      const leave = new AbortController();
      const slow = { tokensPerSecond: 100, answerTokens: 4_000 };
      const answer = await chat(caller, { stream: true }, slow, { signal: leave.signal });
      const reader = answer.body!.getReader();
      let seen = '';
      while (!/("content":"[^"]+".*){5}/s.test(seen)) seen += Buffer.from((await reader.read()).value).toString();
      return leave;
    });
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ outcome: 'client_closed', estimated: true });
    expect(event!.completionTokens).toBeGreaterThanOrEqual(5);
    expect(event!.completionTokens).toBeLessThanOrEqual(gateway.simulator.stats().tokensWritten);
    await expectSettled(caller, rated(event!));
  });

  it.each([true, false])('before anything was delivered pays nothing (stream: %s)', async (stream) => {
    let caller!: Caller;
    await expectStopInTime(async () => {
      caller = await gateway.caller();
      const leave = new AbortController();
      const asked = chat(caller, { stream }, { firstTokenDelayMs: 60_000 }, { signal: leave.signal });
      asked.catch(() => {});
      await eventually(() => expect(gateway.simulator.stats().openNow).toBe(1));
      return leave;
    });
    await expectSettled(caller, 0n);
  });
});

describe('the last byte', () => {
  it.each([true, false])('waits for the settlement (stream: %s)', async (stream) => {
    const caller = await gateway.caller();
    // A settlement needs the tenant's row.
    const { locked, release } = await lockOnceHeld(gateway, caller);
    const answer = chat(caller, { stream, max_tokens: 20 }, { firstTokenDelayMs: LOCKED_WITHIN_MS }).then((response) =>
      response.text(),
    );
    await locked;
    let ended = false;
    void answer.then(() => (ended = true));
    await eventually(async () => {
      const waiting = await gateway.database.query(
        `SELECT FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%end_holds(%'`,
      );
      expect(waiting).toHaveLength(1);
    });
    expect(ended).toBe(false);
    await release();
    expect(await answer).toContain('"completion_tokens":20');
    const [event] = await gateway.events(caller.tenantId, 1);
    await expectSettled(caller, rated(event!));
  });
});

describe('reported usage', () => reportedUsageTests(gateway));
