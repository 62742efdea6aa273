import { mintCredential } from '@tollgate/contracts';
import { metrics } from '@tollgate/runtime';
import { eventually, RawSocket } from '@tollgate/testing';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { answers, usage, usePlayedBackend } from '../backends/played-backend';
import { type Caller, PLENTY, useGateway } from '../use-gateway';

const MIB = 2 ** 20;
const BODY_MEMORY_MIB = 20;
const limits = (change: Partial<typeof PLENTY>) => JSON.stringify({ ...PLENTY, ...change });
const PROFILES = `
      - { id: paid, models: ['small'], limits: ${limits({})} }
      - { id: one-at-once, models: ['told'], limits: ${limits({ concurrency: 1 })} }
      - { id: one-a-minute, models: ['small'], limits: ${limits({ requestsPerMinute: 1 })} }
      - { id: no-budget, models: ['small'], limits: ${limits({})}, monthlyBudgetCents: 0 }
      - { id: sixty, models: ['small'], limits: ${limits({ requestsPerMinute: 60 })} }`;
const FREE = `
  - { id: free, kind: chat, contextTokens: 131072, maxOutputTokens: 4096,
      price: { input: '0', output: '0' }, backends: [{ url: 'simulator:' }] }`;

// Answers when the test tells it to.
const told = usePlayedBackend('told', () => FREE);
// Real: gateway, stores and sockets. The test sends every byte of the client itself.
const gateway = useGateway({
  yaml: () => told.yaml() + PROFILES,
  bodyMemoryMib: BODY_MEMORY_MIB,
  maxBodyMib: 9,
});
const CHAT = { model: 'small', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 2 };

/** The head of a request. The test sends the body. */
const head = ({ key }: { key: string }, ...headers: string[]) =>
  [
    'POST /v1/chat/completions HTTP/1.1',
    'Host: x',
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    ...headers,
    '',
    '',
  ].join('\r\n');
const length = (bytes: number) => `Content-Length: ${bytes}`;
const CHUNKED = 'Transfer-Encoding: chunked';
const EXPECT = 'Expect: 100-continue';
const open = (text: string | Buffer) => new RawSocket(gateway.url).send(text);

async function bodyBytes(): Promise<number> {
  return Number(/^tollgate_body_bytes (\S+)$/m.exec(await metrics.metrics())![1]);
}

describe('the gateway neither asks for nor reads a body', () => {
  const stranger = { key: mintCredential('key').value };

  it.each([length(1_000), length(9 * MIB), CHUNKED])(
    'of an unknown sender, and answers 401 and closes (%s)',
    async (form) => {
      const answer = await open(head(stranger, form, EXPECT)).toEnd();
      expect(answer).toMatch(/^HTTP\/1\.1 401 [\s\S]*connection: close[\s\S]*"invalid_api_key"/);
      expect(answer).not.toContain('100 Continue');
    },
  );

  it('of an unknown sender, but drops a short one and answers the next request of the connection', async () => {
    const socket = open(head(stranger, length(1_000)));
    await socket.until('"invalid_api_key"');
    socket.send(Buffer.alloc(1_000, ' ')).send(head(stranger, length(9 * MIB)));
    expect((await socket.toEnd()).match(/HTTP\/1\.1 401 /g)).toHaveLength(2);
  });

  it('of an unknown sender, and answers each time if the client reads while it sends', async () => {
    const body = Buffer.alloc(9 * MIB, ' ');
    const sockets = Array.from({ length: 20 }, () => open(head(stranger, length(body.length))).send(body));
    for (const socket of sockets) expect(await socket.toEnd()).toContain('"invalid_api_key"');
  });

  it('of a key whose requests would all be refused, with or without a length', async () => {
    const poor = await gateway.caller({ nanos: 0n, profile: 'paid' });
    const suspended = await gateway.caller({ profile: 'paid' });
    await gateway.admission.applyBalanceUpdates([
      { tenantId: suspended.tenantId, version: 2n, balanceNanos: 10n ** 12n, releases: [], suspended: true },
    ]);
    const busy = await gateway.caller({ profile: 'one-at-once' });
    let asked: ServerResponse | undefined;
    told.state.play = (response) => (asked = response);
    const running = gateway.post('/v1/chat/completions', { ...CHAT, model: 'told' }, busy);
    await eventually(() => expect(asked).toBeDefined());
    const quick = await gateway.caller({ profile: 'one-a-minute' });
    expect((await gateway.post('/v1/chat/completions', CHAT, quick)).status).toBe(200);
    const capped = await gateway.caller({ profile: 'no-budget' });
    for (const form of [length(17 * 1024), CHUNKED]) {
      const answers = await Promise.all(
        [poor, suspended, busy, quick, capped].map((who) => open(head(who, form, EXPECT)).toEnd()),
      );
      expect(answers.map((answer) => /^HTTP\/1\.1 (\d+) [\s\S]*"code":"(\w+)"/.exec(answer)?.slice(1))).toEqual([
        ['402', 'credit_exhausted'],
        ['402', 'tenant_suspended'],
        ['429', 'concurrency_limit_exceeded'],
        ['429', 'requests_limit_exceeded'],
        ['402', 'budget_reached'],
      ]);
      for (const answer of answers) {
        expect(answer).toMatch(/connection: close/);
        expect(answer).not.toContain('100 Continue');
      }
      expect(answers[3]).toMatch(/retry-after: \d+\r\n/);
      expect(answers[3]).toMatch(/x-ratelimit-remaining-requests: 0\r\n/);
    }
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }];
    answers({ choices, ...usage(8, 1) })(asked!, {});
    expect((await running).status).toBe(200);
  });

  it('of a key that was just refused, even a small one, until a top-up, which is in force at once', async () => {
    const poor = await gateway.caller({ nanos: 0n, profile: 'paid' });
    const body = JSON.stringify(CHAT);
    const ask = () => open(head(poor, length(body.length), EXPECT, 'Connection: close'));
    // The gateway does not know yet that the key would be refused.
    const first = ask();
    await first.until('100 Continue');
    expect(await first.send(body).toEnd()).toContain('"credit_exhausted"');
    for (let i = 0; i < 3; i++) {
      const answer = await ask().toEnd();
      expect(answer).toMatch(/^HTTP\/1\.1 402 [\s\S]*"credit_exhausted"/);
      expect(answer).toMatch(/x-ratelimit-remaining-requests: \d+\r\n/);
    }
    await gateway.admission.applyBalanceUpdates([
      { tenantId: poor.tenantId, version: 2n, balanceNanos: 10n ** 12n, releases: [], suspended: false },
    ]);
    const look = jest.spyOn(gateway.admission, 'look');
    for (let i = 0; i < 2; i++) {
      const served = ask();
      await served.until('100 Continue');
      expect(await served.send(body).toEnd()).toMatch(/HTTP\/1\.1 200 /);
    }
    // After one look that refused nothing, the key is admitted in one call again.
    expect(look).toHaveBeenCalledTimes(1);
    look.mockRestore();
  });

  it.each([
    [length(9 * MIB + 1), '413', 'The body is larger than the limit of 9 MiB. Send a smaller one.'],
    ['Content-Encoding: gzip\r\nContent-Length: 100', '415', 'unsupported_media_type'],
  ])('that is too large or not JSON (%s)', async (form, status, words) => {
    const answer = await open(head(await gateway.caller(), form, EXPECT)).toEnd();
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*connection: close`));
    expect(answer).toContain(words);
    expect(answer).not.toContain('100 Continue');
  });
});

describe('a body that is read', () => {
  it('is asked for if the client waits for 100 Continue, small or large', async () => {
    const caller = await gateway.caller();
    for (const padding of [10, 100_000]) {
      const body = JSON.stringify({ ...CHAT, user: 'x', messages: [{ role: 'user', content: ' '.repeat(padding) }] });
      const socket = open(head(caller, length(body.length), EXPECT, 'Connection: close'));
      await socket.until('HTTP/1.1 100 Continue\r\n\r\n');
      // The large body was read and parsed: its spaces are few tokens.
      expect(await socket.send(body).toEnd()).toMatch(/HTTP\/1\.1 200 /);
    }
  });

  it('needs no credit if the key may use a free model', async () => {
    const poor = await gateway.caller({ nanos: 0n });
    const large = (model: string) => ({
      ...CHAT,
      model,
      messages: [{ role: 'user', content: 'word '.repeat(10_000) }],
    });
    expect((await gateway.post('/v1/chat/completions', large('free'), poor)).status).toBe(200);
    expect((await gateway.post('/v1/chat/completions', large('long'), poor)).status).toBe(402);
  });
});

describe('the memory of bodies', () => {
  const unfinished = (who: Caller, bytes: number) => open(head(who, length(bytes))).send(Buffer.alloc(bytes - 1, ' '));

  it('of 50 unfinished requests of a key stays within its budget, and another key is served', async () => {
    const [greedy, other] = [await gateway.caller(), await gateway.caller()];
    const sockets = Array.from({ length: 50 }, () => unfinished(greedy, 9 * MIB));
    let most = 0;
    await eventually(async () => {
      most = Math.max(most, await bodyBytes());
      expect(sockets.filter(({ text }) => text !== '')).toHaveLength(48);
    });
    expect(most).toBeLessThanOrEqual(BODY_MEMORY_MIB * MIB);
    expect(await bodyBytes()).toBe(2 * 9 * MIB);
    for (const { text } of sockets.filter(({ text }) => text !== '')) {
      expect(text).toMatch(/^HTTP\/1\.1 429 [\s\S]*retry-after: 1\r\n[\s\S]*connection: close[\s\S]*20 MiB/);
      expect(text).toContain('"concurrency_limit_exceeded"');
    }
    expect((await gateway.post('/v1/chat/completions', CHAT, other)).status).toBe(200);
    // The budget of all keys is used up before the budget of the other key.
    expect(await open(head(other, length(3 * MIB))).toEnd()).toMatch(/^HTTP\/1\.1 503 [\s\S]*"overloaded_error"/);
    for (const socket of sockets) socket.destroy();
    await eventually(async () => expect(await bodyBytes()).toBe(0));
    expect((await gateway.post('/v1/chat/completions', CHAT, other)).status).toBe(200);
  });

  it('of a body without a length grows with it, up to the same budget, and is freed with the answer', async () => {
    const caller = await gateway.caller();
    const chunk = Buffer.concat([Buffer.from(`${(9 * MIB).toString(16)}\r\n`), Buffer.alloc(9 * MIB, ' ')]);
    const first = open(head(caller, CHUNKED)).send(chunk);
    await eventually(async () => expect(await bodyBytes()).toBeGreaterThanOrEqual(9 * MIB));
    const second = open(head(caller, CHUNKED)).send(chunk);
    await eventually(async () => expect(await bodyBytes()).toBeGreaterThanOrEqual(18 * MIB));
    const third = open(head(caller, CHUNKED)).send(chunk);
    expect(await third.until('"concurrency_limit_exceeded"')).toMatch(/^HTTP\/1\.1 429 /);
    expect(await bodyBytes()).toBeLessThanOrEqual(BODY_MEMORY_MIB * MIB);
    for (const socket of [first, second]) {
      expect(await socket.send('\r\n0\r\n\r\n').until('"invalid_json"')).toMatch(/^HTTP\/1\.1 400 /);
      socket.destroy();
    }
    await eventually(async () => expect(await bodyBytes()).toBe(0));
  });

  it('of a body in chunks of one byte is no more than its bytes, and the chunks are joined', async () => {
    const caller = await gateway.caller();
    const body = JSON.stringify({ ...CHAT, user: 'é'.repeat(50) });
    const pieces = [...Buffer.from(body)].map((byte) =>
      Buffer.concat([Buffer.from('1\r\n'), Buffer.from([byte]), Buffer.from('\r\n')]),
    );
    const socket = open(head(caller, CHUNKED, 'Connection: close')).send(
      Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')]),
    );
    expect(await socket.toEnd()).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe('invalid requests', () => {
  it('count by size against their own limit, beyond which no body of the key is read', async () => {
    const [wasteful, other] = [await gateway.caller({ profile: 'sixty' }), await gateway.caller({ profile: 'sixty' })];
    const invalid = Buffer.alloc(9 * MIB, ' ');
    for (let i = 0; i < 2; i++) {
      const answer = await eventually(async () => {
        const tried = await gateway.post('/v1/chat/completions', invalid, wasteful);
        // One invalid body blocks a key for at most a second.
        expect(tried.status).toBe(400);
        return tried;
      });
      expect(await answer.json()).toMatchObject({ error: { code: 'invalid_json' } });
    }
    for (const form of [length(1_000), length(9 * MIB), CHUNKED]) {
      const answer = await open(head(wasteful, form, EXPECT)).toEnd();
      expect(answer).toMatch(/^HTTP\/1\.1 429 [\s\S]*"requests_limit_exceeded"/);
      expect(answer).not.toContain('100 Continue');
      const waitSeconds = Number(/retry-after: (\d+)/.exec(answer)![1]);
      expect(waitSeconds).toBeGreaterThan(1);
      expect(waitSeconds).toBeLessThanOrEqual(61);
    }
    expect((await gateway.post('/v1/chat/completions', CHAT, other)).status).toBe(200);
  });
});

describe('garbage after a request', () => {
  it('is never answered inside a running stream: the stream ends normally, then the connection closes', async () => {
    const caller = await gateway.caller();
    const simulator = { answerTokens: 30, tokensPerSecond: 60 };
    const body = JSON.stringify({ ...CHAT, max_tokens: 30, stream: true, simulator });
    const socket = open(head(caller, length(body.length))).send(body);
    await socket.until('data: ');
    const noticed = once(gateway.app.getHttpServer(), 'clientError');
    socket.send('GARBAGE / NONSENSE\r\n\r\n'.repeat(100));
    await noticed;
    const text = await socket.toEnd();
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(text).toContain('data: [DONE]');
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ completionTokens: 30, outcome: 'complete' });
  });
});
