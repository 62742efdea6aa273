import { eventually } from '@tollgate/testing';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { python, pythonEnv } from '../clients/python';
import { type Caller, configYaml, useGateway } from '../gateway/use-gateway';

const START_TIMEOUT_MS = 120_000;
const messages = [{ role: 'user' as const, content: 'Say something about gateways.' }];
// Without chance, so that a stream has the words of the plain answer.
const asked = { model: 'tiny', messages, max_tokens: 24, temperature: 0, seed: 7 };

// Real: llama.cpp's own server, with a model that a script writes, behind a gateway on a real PostgreSQL.
const engine = useEngine();
const gateway = useGateway({
  yaml: () =>
    configYaml({
      models: `  - { id: tiny, kind: chat, contextTokens: 2048, maxOutputTokens: 1024,
      price: { input: '1', cachedInput: '0.5', output: '2' },
      backends: [{ url: '${engine.url}/v1', model: tiny, dialect: llamacpp }] }`,
    }),
});
let caller: Caller;
beforeAll(async () => void (caller = await gateway.caller()));

it('the engine answers a chat, and its usage is what is charged', async () => {
  const answer = await caller.openai.chat.completions.create(asked);
  expect(answer).toMatchObject({ object: 'chat.completion', model: 'tiny' });
  expect(answer.choices[0]!.finish_reason).toBe('length');
  expect(answer.usage).toMatchObject({ completion_tokens: 24 });
  expect(JSON.stringify(answer)).not.toMatch(/gguf|timings|fingerprint/);
  const [event] = await eventually(() => atLeast(1));
  expect(event).toMatchObject({
    promptTokens: answer.usage!.prompt_tokens,
    completionTokens: 24,
    estimated: false,
    outcome: 'complete',
  });
});

it('the engine streams the same text with the same usage', async () => {
  const plain = await caller.openai.chat.completions.create(asked);
  let text = '';
  let usage;
  for await (const chunk of await caller.openai.chat.completions.create({ ...asked, stream: true })) {
    text += chunk.choices[0]!.delta.content ?? '';
    usage = chunk.usage ?? usage;
    expect(JSON.stringify(chunk)).not.toMatch(/gguf|timings|fingerprint/);
  }
  expect(text).toBe(plain.choices[0]!.message.content);
  expect(usage).toMatchObject({ prompt_tokens: plain.usage!.prompt_tokens, completion_tokens: 24 });
});

it('the engine completes a text, plain and streamed', async () => {
  const legacy = { model: 'tiny', prompt: 'Once upon a time', max_tokens: 16, temperature: 0 };
  const plain = await caller.openai.completions.create(legacy);
  let text = '';
  for await (const chunk of await caller.openai.completions.create({ ...legacy, stream: true }))
    text += chunk.choices[0]!.text;
  // At the end of a stream, llama.cpp leaves out bytes that are not a whole character yet.
  expect(text).not.toBe('');
  expect(plain.choices[0]!.text.startsWith(text)).toBe(true);
  expect(plain.usage).toMatchObject({ completion_tokens: 16 });
});

it('the engine gives log probabilities, one for each token that is charged', async () => {
  const { choices, usage } = await caller.openai.chat.completions.create({ ...asked, logprobs: true, top_logprobs: 2 });
  const tokens = choices[0]!.logprobs!.content!;
  expect(tokens.length).toBeGreaterThan(0);
  expect(tokens.length).toBeLessThanOrEqual(usage!.completion_tokens);
  for (const { logprob, top_logprobs } of tokens) {
    expect(logprob).toBeLessThanOrEqual(0);
    expect(top_logprobs).toHaveLength(2);
  }
});

it('the engine keeps to a JSON schema, and says that it stopped', async () => {
  const schema = {
    type: 'object',
    properties: { isOpen: { type: 'boolean' }, gate: { enum: ['north', 'south'] } },
    required: ['isOpen', 'gate'],
    additionalProperties: false,
  };
  const { choices } = await caller.openai.chat.completions.create({
    ...asked,
    max_tokens: 200,
    response_format: { type: 'json_schema', json_schema: { name: 'gate', strict: true, schema } },
  });
  expect(choices[0]!.finish_reason).toBe('stop');
  expect(JSON.parse(choices[0]!.message.content!)).toEqual({
    isOpen: expect.any(Boolean),
    gate: expect.stringMatching(/^(north|south)$/),
  });
});

it('its refusal of a request is passed on as the client’s', async () => {
  const refused = await gateway.post('/v1/chat/completions', { ...asked, grammar: 'root ::= (' }, caller);
  expect(refused.status).toBe(400);
  expect(await refused.json()).toEqual({
    error: {
      message: expect.stringContaining('grammar'),
      type: 'invalid_request_error',
      param: null,
      code: expect.any(String),
    },
  });
});

it('the engine has counted exactly the tokens that were charged', async () => {
  const counted = await engine.counted();
  await eventually(async () => {
    const events = gateway.eventsOf(caller.tenantId);
    const sum = (count: (event: (typeof events)[number]) => number) =>
      events.reduce((total, event) => total + count(event), 0);
    expect({ prompt: sum((event) => event.promptTokens), completion: sum((event) => event.completionTokens) }).toEqual(
      counted,
    );
    expect(events.every(({ estimated }) => !estimated)).toBe(true);
    const { settledNanos, pendingHolds } = await gateway.snapshot(caller.tenantId);
    expect({ settledNanos, pendingHolds }).toEqual({
      settledNanos: events.reduce((total, event) => total + BigInt(event.costNanos), 0n),
      pendingHolds: 0,
    });
  });
});

it('the engine stops when the client leaves a stream, which is charged for a part', async () => {
  const leaving = await gateway.caller();
  const before = await engine.counted();
  const stream = await leaving.openai.chat.completions.create({ ...asked, max_tokens: 1_000, stream: true });
  for await (const chunk of stream) if (chunk.choices[0]!.delta.content) break;
  const [event] = await gateway.events(leaving.tenantId, 1);
  await eventually(async () => expect(await engine.running()).toBe(0));
  expect(event!.outcome).toBe('client_closed');
  const generated = (await engine.counted()).completion - before.completion;
  expect(event!.completionTokens).toBeGreaterThan(0);
  expect(event!.completionTokens).toBeLessThanOrEqual(generated);
});

function atLeast(count: number) {
  const events = gateway.eventsOf(caller.tenantId);
  expect(events.length).toBeGreaterThanOrEqual(count);
  return events;
}

/** Starts the server for this file. */
function useEngine() {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-engine-'));
  let server: ChildProcess | undefined;
  const state = {
    url: '',
    /** The tokens that the engine counted since its start. */
    counted: async () => ({
      prompt: (await metric('prompt_tokens_total')) + (await metric('prompt_tokens_cached_total')),
      completion: await metric('tokens_predicted_total'),
    }),
    running: () => metric('requests_processing'),
  };
  const metric = async (name: string): Promise<number> => {
    const text = await (await fetch(`${state.url}/metrics`)).text();
    return Number(new RegExp(`^llamacpp:${name} (\\S+)$`, 'm').exec(text)![1]);
  };
  beforeAll(async () => {
    server = spawn(python('tools'), [join(__dirname, 'llama_server.py'), directory], {
      env: { ...process.env, ...pythonEnv },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    let errors = '';
    server.stderr!.on('data', (text: Buffer) => (errors += text.toString()));
    const [first] = await Promise.any([once(createInterface({ input: server.stdout! }), 'line'), once(server, 'exit')]);
    if (typeof first !== 'string') throw new Error(`the engine did not start:\n${errors}`);
    state.url = (JSON.parse(first) as { url: string }).url;
  }, START_TIMEOUT_MS);
  afterAll(async () => {
    // Its input ends, and so does it.
    if (server?.exitCode === null) {
      const exit = once(server, 'exit');
      server.stdin!.end();
      await exit;
    }
    rmSync(directory, { recursive: true, force: true });
  });
  return state;
}
