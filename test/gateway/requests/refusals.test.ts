import { type AdmitRequest, PostgresAdmissionStore } from '@tollgate/admission';
import { NANOS_PER_CENT, newId } from '@tollgate/contracts';
import { eventually, PATIENT_CALL_MS } from '@tollgate/testing';
import { INFERENCE_ERRORS } from '../../../apps/gateway/src/inference-errors';
import { type Caller, configYaml, PLENTY, useGateway } from '../use-gateway';

const LIMITED = `
      - { id: few, models: ['*'], limits: { requestsPerMinute: 3, tokensPerMinute: 100000, concurrency: 1 } }
      - { id: tokens, models: ['*'], limits: { requestsPerMinute: 1000, tokensPerMinute: 1000, concurrency: 10 } }
      - { id: budget, models: ['*'],
          limits: { requestsPerMinute: 1000, tokensPerMinute: 100000, concurrency: 10 }, monthlyBudgetCents: 0 }
      - { id: cent, models: ['*'],
          limits: { requestsPerMinute: 1000, tokensPerMinute: 100000, concurrency: 10 }, monthlyBudgetCents: 1 }
  - id: small
    limits: { requestsPerMinute: 2, tokensPerMinute: 100000, concurrency: 10 }
    profiles:
      - { id: in-small, models: ['*'], limits: { requestsPerMinute: 9, tokensPerMinute: 50000, concurrency: 10 } }`;
const BACKENDS = (simulatorUrl: string) => `
  - { id: dear, kind: chat, contextTokens: 8192,
      price: { input: '0', output: '1000' }, backends: [{ url: 'simulator:' }] }
  - { id: dead, kind: chat, contextTokens: 8192,
      price: { input: '1', output: '2' }, backends: [{ url: 'http://127.0.0.1:1/v1' }] }
  - { id: half-dead, kind: chat, contextTokens: 8192,
      price: { input: '1', output: '2' },
      backends: [{ url: 'http://127.0.0.1:1/v1', weight: 1000 }, { url: '${simulatorUrl}' }] }`;

const gateway = useGateway({
  yaml: (simulatorUrl) => configYaml({ models: BACKENDS(simulatorUrl), plans: LIMITED }),
});
const messages = [{ role: 'user', content: 'Hello' }];
const CHAT = { model: 'small', messages, max_tokens: 2 };
let caller: Caller;
beforeAll(async () => {
  caller = await gateway.caller();
});

async function ask(body: unknown, path = '/v1/chat/completions', init: RequestInit = {}, who = caller) {
  const answer = await gateway.post(path, body, who, init);
  return { status: answer.status, headers: answer.headers, json: JSON.parse(await answer.text()) };
}

/** A free request of this key, as another gateway admits it. */
function requestOf({ tenantId, keyId }: Caller, model: string): AdmitRequest {
  const price = { version: 'test', inputFemtos: '0', cachedInputFemtos: '0', outputFemtos: '0', requestNanos: '0' };
  const startedAt = new Date().toISOString();
  return {
    draft: { id: newId('req'), tenantId, keyId, model, kind: 'chat', stream: true, price, startedAt },
    tenantLimits: PLENTY,
    keyLimits: PLENTY,
    keyBudgetNanos: null,
    tenantBudgetNanos: null,
    promptTokens: 1,
    promptFemtos: 0n,
    outputFemtosPerToken: 0n,
    wantOutputTokens: 1,
    minOutputTokens: 1,
    boundIsExact: true,
  };
}

const refusal = (code: keyof typeof INFERENCE_ERRORS, param: string | null = null) => ({
  error: { message: expect.any(String), type: INFERENCE_ERRORS[code].type, param, code },
});

describe('limits', () => {
  it('of requests answer 429 with the wait, and headers with the state of the key', async () => {
    const few = await gateway.caller({ profile: 'few' });
    const from = performance.now();
    /** Seconds since the first request, rounded up. The limit recovers from then on. */
    const passed = () => Math.ceil((performance.now() - from) / 1_000);
    const first = await ask(CHAT, undefined, {}, few);
    expect(Object.fromEntries([...first.headers].filter(([name]) => name.startsWith('x-ratelimit')))).toEqual({
      'x-ratelimit-limit-requests': '3',
      'x-ratelimit-limit-tokens': '100000',
      'x-ratelimit-remaining-requests': '2',
      'x-ratelimit-remaining-tokens': expect.stringMatching(/^99\d{3}$/),
      'x-ratelimit-reset-requests': '20s',
      'x-ratelimit-reset-tokens': expect.stringMatching(/^\d+ms$/),
      'x-ratelimit-scope': 'key',
    });
    await ask(CHAT, undefined, {}, few);
    await ask(CHAT, undefined, {}, few);
    // Answers that count against no limit have the headers too.
    const models = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${few.key}` } });
    const answers = [
      models,
      await ask({ model: 'small' }, undefined, {}, few),
      await ask({ ...CHAT, model: 'none' }, undefined, {}, few),
      await ask(CHAT, '/v1/nothing', {}, few),
      await ask(CHAT, '/v1/models', {}, few),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 404, 404, 405]);
    const refused = await ask(CHAT, undefined, {}, few);
    expect([refused.status, refused.json]).toEqual([429, refusal('requests_limit_exceeded')]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(20 - passed());
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(20);
    expect(refused.headers.get('x-ratelimit-remaining-requests')).toBe('0');
    // No body of a key that was just refused is read, so an invalid one gets 429 too.
    expect((await ask({ model: 'small' }, undefined, {}, few)).status).toBe(429);
    for (const { headers } of answers) {
      expect(headers.get('x-ratelimit-limit-tokens')).toBe('100000');
      expect(headers.get('x-ratelimit-remaining-requests')).toBe('0');
      const [, minutes, seconds] = /^(?:(1)m)?(\d+)s$/.exec(headers.get('x-ratelimit-reset-requests')!)!;
      const resetSeconds = Number(minutes ?? 0) * 60 + Number(seconds);
      expect(resetSeconds).toBeGreaterThanOrEqual(60 - passed());
      expect(resetSeconds).toBeLessThanOrEqual(60);
    }
  });

  it('show in their headers the limit that would refuse first, and whose it is', async () => {
    const shared = await gateway.caller({ profile: 'in-small', plan: 'small' });
    const shown = ({ headers }: { headers: Headers }) =>
      ['limit-requests', 'remaining-requests', 'limit-tokens', 'scope'].map((what) =>
        headers.get(`x-ratelimit-${what}`),
      );
    expect(shown(await ask(CHAT, undefined, {}, shared))).toEqual(['2', '1', '50000', 'requests=account, tokens=key']);
    const nothing = await ask(CHAT, '/v1/nothing', {}, shared);
    expect([nothing.status, ...shown(nothing)]).toEqual([404, '2', '1', '50000', 'requests=account, tokens=key']);
    await ask(CHAT, undefined, {}, shared);
    const refused = await ask(CHAT, undefined, {}, shared);
    expect([refused.status, ...shown(refused).slice(0, 2)]).toEqual([429, '2', '0']);
    expect(refused.json.error.message).toContain('limit of this account');
    // Without a valid key nobody learns a limit.
    const stranger = await fetch(`${gateway.url}/v1/nothing`, { headers: { authorization: 'Bearer sk-svc-x' } });
    expect([stranger.status, stranger.headers.get('x-ratelimit-scope')]).toEqual([404, null]);
  });

  it('of tokens count a long prompt exactly before they refuse it', async () => {
    const who = await gateway.caller({ profile: 'tokens' });
    // 1,500 bytes, which is above the limit, but only 300 tokens.
    const long = { ...CHAT, messages: [{ role: 'user', content: 'word '.repeat(300) }] };
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await ask(long, undefined, {}, who)).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
    const refused = await ask(long, undefined, {}, who);
    expect(refused.json).toEqual(refusal('tokens_limit_exceeded'));
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  });

  it('of concurrency name the soonest end of requests on other gateways, which this one does not know', async () => {
    const few = await gateway.caller({ profile: 'few' });
    let nowMs = Date.now();
    const patient = { url: gateway.database.url, callTimeoutMs: PATIENT_CALL_MS };
    const other = new PostgresAdmissionStore({ ...patient, now: () => nowMs });
    const begin = async (model: string, agoMs: number) => {
      nowMs = Date.now() - agoMs;
      const request = requestOf(few, model);
      expect(await other.admit([request])).toMatchObject([{ kind: 'held' }]);
      return request.draft;
    };
    for (const [model, lengthMs] of [
      ['small', 30_000],
      ['dear', 2_000],
    ] as const) {
      const { id, tenantId } = await begin(model, lengthMs);
      nowMs += lengthMs;
      expect(await other.void([{ id, tenantId }])).toEqual([true]);
    }
    const { id, tenantId } = await begin('small', 9_000);
    const from = performance.now();
    const refused = await ask(CHAT, undefined, {}, few);
    expect([refused.status, refused.json]).toEqual([429, refusal('concurrency_limit_exceeded')]);
    // 30 s less its age. The mean of all models would say ⌊(30 × 7 + 2) ÷ 8⌋ = 26 s from now.
    const retryAfter = Number(refused.headers.get('retry-after'));
    expect(retryAfter).toBeLessThanOrEqual(21);
    expect(retryAfter).toBeGreaterThanOrEqual(21 - Math.ceil((performance.now() - from) / 1_000));
    await other.void([{ id, tenantId }]);
    await other.close();
  });

  it('of concurrency admit another request from the last byte on', async () => {
    const few = await gateway.caller({ profile: 'few' });
    const slow = ask({ ...CHAT, simulator: { firstTokenDelayMs: 5_000 } }, undefined, {}, few);
    await eventually(async () => expect((await gateway.snapshot(few.tenantId)).pendingHolds).toBe(1));
    const refused = await ask(CHAT, undefined, {}, few);
    expect([refused.status, refused.json, refused.headers.get('retry-after')]).toEqual([
      429,
      refusal('concurrency_limit_exceeded'),
      '1',
    ]);
    expect((await slow).status).toBe(200);
    expect((await ask(CHAT, undefined, {}, few)).status).toBe(200);
  });

  it('of a budget, of credit and of a suspended tenant answer 402 without a wait', async () => {
    const budget = await gateway.caller({ profile: 'budget' });
    const poor = await gateway.caller({ nanos: 5n });
    const suspended = await gateway.caller();
    await gateway.admission.applyBalanceUpdates([
      { tenantId: suspended.tenantId, version: 2n, balanceNanos: 10n ** 12n, releases: [], suspended: true },
    ]);
    for (const [who, code] of [
      [budget, 'budget_reached'],
      [poor, 'credit_exhausted'],
      [suspended, 'tenant_suspended'],
    ] as const) {
      const { status, json, headers } = await ask(CHAT, undefined, {}, who);
      expect([status, json, headers.get('retry-after')]).toEqual([402, refusal(code), null]);
    }
  });

  it('of several choices name the budget or the credit if it does not pay for one token each', async () => {
    // A cent pays for ten tokens of this model.
    const dear = { ...CHAT, model: 'dear', max_tokens: undefined, simulator: { answerTokens: 1 } };
    const poor = () => gateway.caller({ nanos: NANOS_PER_CENT });
    const limited = () => gateway.caller({ profile: 'cent' });
    for (const [caller, code] of [
      [poor, 'credit_exhausted'],
      [limited, 'budget_reached'],
    ] as const) {
      for (const stream of [false, true]) {
        const answer = await ask({ ...dear, n: 16, stream }, undefined, {}, await caller());
        expect([answer.status, answer.json]).toEqual([402, refusal(code)]);
      }
      const who = await caller();
      const { status, json } = await ask({ ...dear, n: 9 }, undefined, {}, who);
      expect([status, json.usage.completion_tokens]).toEqual([200, 9]);
      expect(await gateway.snapshot(who.tenantId)).toMatchObject({ pendingHolds: 0 });
    }
  });
});

describe('a backend that refuses or fails', () => {
  const failing = (faults: object[], fields: object = {}) => ask({ ...CHAT, ...fields, simulator: { faults } });
  it.each([
    [400, 400, 'invalid_value'],
    [422, 400, 'invalid_value'],
    [401, 502, 'upstream_error'],
    [403, 502, 'upstream_error'],
    [404, 502, 'upstream_error'],
    [500, 502, 'upstream_error'],
    [429, 503, 'overloaded_error'],
    [503, 503, 'overloaded_error'],
    [504, 504, 'timeout_error'],
  ] as const)('with %i is answered with %i %s', async (status, ours, code) => {
    for (const stream of [false, true]) {
      const answer = await failing([{ kind: 'status', status }], { stream });
      expect([answer.status, answer.json.error.type]).toEqual([ours, INFERENCE_ERRORS[code].type]);
      expect(JSON.stringify(answer.json)).not.toContain('inner-');
      if (ours === 503) expect(answer.headers.get('retry-after')).toBe('1');
    }
  });

  it('is replaced by another after a temporary status, but not after one that the request caused', async () => {
    gateway.simulator.reset();
    expect((await ask({ ...CHAT, model: 'half-dead' })).status).toBe(200);
    const refused = await ask({ ...CHAT, model: 'dead' });
    expect([refused.status, refused.json]).toEqual([502, refusal('upstream_error')]);
    expect(gateway.simulator.stats().requestsStarted).toBe(1);
  });
});
