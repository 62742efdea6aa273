import { eventually } from '@tollgate/testing';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { configYaml, PLENTY, useGateway, type Caller } from '../gateway/use-gateway';
import { breakingProxy, type BreakingProxy } from './breaking-proxy';
import { pythonEnv } from './python';

const ROOT = join(__dirname, '../..');
/** The whole run of a program on a slow machine. */
const PROGRAM_TIMEOUT_MS = 300_000;
/** The program, and the start of the gateway. */
const HOOK_TIMEOUT_MS = 360_000;
const OUTPUT_MAX_BYTES = 10 * 1024 * 1024;
const PROMPT = 'Say something about gateways.';
/** Longer than any test runs. */
const SLOW = { tokensPerSecond: 20, answerTokens: 16_000 };

/** A program that uses one client, unmodified. */
export interface Program {
  /** As in the table of docs/clients.md. */
  client: string;
  /** The interpreter and the file. */
  command: readonly [string, string];
}

interface Outcome {
  case: string;
  result?: unknown;
  failure?: string;
}
interface Text {
  text: string;
  finish: string;
  usage: { prompt: number; completion: number };
  model: string;
}
interface Refusal {
  status: number;
  code: string | null;
  param: string | null;
  message: string;
}

/** The cases of the table in docs/clients.md, by client: true if the client has such a call. */
function documentedCases(client: string): Map<string, boolean> {
  const rows = readFileSync(join(ROOT, 'docs/clients.md'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) => line.split('|').map((cell) => cell.trim()));
  const names = rows.find((cells) => cells[1] === 'case')!;
  const column = names.indexOf(client);
  const cases = rows.filter((cells) => cells.length === names.length && /^`\w+`$/.test(cells[1]!));
  return new Map(cases.map((cells) => [cells[1]!.slice(1, -1), cells[column] === 'yes']));
}

/** Runs each program against a gateway, and asserts what it saw and what it was charged. */
export function clientSuite(programs: readonly Program[]): void {
  const gateway = useGateway({
    idempotency: { secrets: ['a-secret-for-the-answers-of-this-test-file'] },
    simulator: { models: { 'inner-slow': SLOW, 'inner-embed': { embeddingDimensions: 8 } } },
    yaml: () =>
      configYaml({
        models: `  - { id: slow, kind: chat, contextTokens: 131072, maxOutputTokens: 16384,
      price: { input: '1', output: '2' }, backends: [{ url: 'simulator:', model: inner-slow }] }`,
        plans: `      - { id: single, models: ['*'], limits: ${JSON.stringify({ ...PLENTY, concurrency: 1 })} }`,
      }),
  });

  describe.each(programs)('$client', ({ client, command }) => {
    const documented = documentedCases(client);
    const outcomes = new Map<string, Outcome>();
    let caller: Caller;
    let repeater: Caller;
    let proxy: BreakingProxy;
    let refusedForConcurrency = 0;

    /** What the program reported about a case. */
    const result = <T>(name: string): T => {
      const outcome = outcomes.get(name);
      if (!outcome) throw new Error(`${client} did not report the case ${name}`);
      if (outcome.failure !== undefined) throw new Error(outcome.failure);
      return outcome.result as T;
    };
    /** A case of the table. A client without such a call must not report it. */
    const plays = (name: string, title: string, test: () => unknown) =>
      documented.get(name)
        ? it(`${name}: ${title}`, async () => void (await test()))
        : it(`${name}: is not a call of this client`, () => expect(outcomes.has(name)).toBe(false));

    beforeAll(async () => {
      caller = await gateway.caller();
      const [poor, single] = await Promise.all([gateway.caller({ nanos: 0n }), gateway.caller({ profile: 'single' })]);
      repeater = await gateway.caller();
      proxy = await breakingProxy(gateway.url);
      // A running stream takes the only place of a key until the program was refused it once.
      const blocking = new AbortController();
      const body = { model: 'slow', messages: [{ role: 'user', content: PROMPT }], stream: true };
      const stream = await gateway.post('/v1/chat/completions', body, single, { signal: blocking.signal });
      expect(stream.status).toBe(200);
      const server = gateway.app.getHttpServer();
      const watch = (request: IncomingMessage, response: ServerResponse) => {
        if (request.headers.authorization !== `Bearer ${single.key}`) return;
        response.once('finish', () => {
          if (response.statusCode !== 429) return;
          refusedForConcurrency += 1;
          blocking.abort();
        });
      };
      server.on('request', watch);
      try {
        for (const outcome of await runProgram(command, {
          baseUrl: `${gateway.url}/v1`,
          key: caller.key,
          poorKey: poor.key,
          singleKey: single.key,
          repeatedKey: repeater.key,
          breakingUrl: `${proxy.url}/v1`,
          model: 'small',
          slowModel: 'slow',
          embeddingModel: 'embed',
          prompt: PROMPT,
        }))
          outcomes.set(outcome.case, outcome);
      } finally {
        server.off('request', watch);
        blocking.abort();
        await proxy.close();
      }
    }, HOOK_TIMEOUT_MS);

    it('reports the cases that the table of docs/clients.md lists, and no others', () => {
      const listed = [...documented].filter(([, has]) => has).map(([name]) => name);
      expect([...outcomes.keys()].sort()).toEqual(listed.sort());
    });

    plays('chat', 'gets the text, the end, the usage and the name of the model', async () => {
      const answer = await gateway.post(
        '/v1/chat/completions',
        { model: 'small', messages: [{ role: 'user', content: PROMPT }], max_tokens: 20 },
        await gateway.caller(),
      );
      const raw = (await answer.json()) as {
        choices: [{ message: { content: string } }];
        usage: { prompt_tokens: number };
      };
      expect(result<Text>('chat')).toEqual({
        text: raw.choices[0].message.content,
        finish: 'length',
        usage: { prompt: raw.usage.prompt_tokens, completion: 20 },
        model: 'small',
      });
    });

    plays('stream', 'gets the same text and usage as without a stream', () => {
      expect(result<Text>('stream')).toEqual(result<Text>('chat'));
    });

    plays('tools', 'calls a tool, plain and streamed, and answers with its result', () => {
      const tools = result<{ name: string; arguments: object; streamed: object; answer: string }>('tools');
      expect(tools).toMatchObject({
        name: 'weather',
        arguments: { city: expect.any(String), days: expect.any(Number) },
      });
      expect(tools.streamed).toEqual(tools.arguments);
      expect(tools.answer).not.toBe('');
    });

    plays('structured', 'gets an object of the schema', () => {
      expect(result('structured')).toEqual({ name: expect.any(String), age: expect.any(Number) });
    });

    plays('legacy', 'completes a text', () => {
      const { text, usage } = result<Text>('legacy');
      expect(text).not.toBe('');
      expect(usage).toEqual({ prompt: expect.any(Number), completion: 20 });
    });

    plays('embeddings', 'gets the numbers that the model made, in the encoding that the client asks for', async () => {
      const body = { model: 'embed', input: ['one', 'two'], encoding_format: 'float' };
      const answer = await gateway.post('/v1/embeddings', body, await gateway.caller());
      const { data } = (await answer.json()) as { data: { embedding: number[] }[] };
      const { vectors, promptTokens } = result<{ vectors: number[][]; promptTokens: number | null }>('embeddings');
      expect(vectors.map((vector) => vector.map(Math.fround))).toEqual(
        data.map(({ embedding }) => embedding.map(Math.fround)),
      );
      expect([2, null]).toContain(promptTokens);
    });

    plays('models', 'lists the models, and retrieves one', () => {
      const { list, retrieved } = result<{ list: string[]; retrieved: string }>('models');
      expect(list).toEqual(['small', 'long', 'eyes', 'embed', 'slow']);
      expect(retrieved).toBe('small');
    });

    plays('errors', 'raises its own error with our status, code and message', () => {
      const refusals = result<Record<string, Refusal>>('errors');
      const expected = {
        wrongKey: [401, 'invalid_api_key', null],
        noCredit: [402, 'credit_exhausted', null],
        unknownModel: [404, 'model_not_found', 'model'],
        invalid: [400, 'invalid_value', 'temperature'],
      };
      for (const [name, [status, code, param]] of Object.entries(expected)) {
        const refusal = refusals[name]!;
        expect([name, refusal.status]).toEqual([name, status]);
        expect(refusal.message.length).toBeGreaterThan(10);
        if (refusal.code === null) continue;
        expect([name, refusal.code, refusal.param ?? null]).toEqual([name, code, param]);
      }
    });

    plays('retries', 'waits as `Retry-After` says after a 429, and succeeds by itself', () => {
      expect(refusedForConcurrency).toBeGreaterThan(0);
      expect(result<Text>('retries').text).toBe(result<Text>('chat').text);
    });

    plays('repeats', 'repeats by itself when the connection breaks, and is charged once', async () => {
      expect(proxy.connections).toBe(2);
      expect(result<Text>('repeats').text).toBe(result<Text>('chat').text);
      await gateway.events(repeater.tenantId, 1);
      expect((await gateway.snapshot(repeater.tenantId)).pendingHolds).toBe(0);
    });

    plays('abort', 'pays for the part of a stream that it read before it left', async () => {
      expect(result<Text>('abort').text).not.toBe('');
      const left = await eventually(async () => {
        const events = await gateway.eventsOf(caller.tenantId);
        const [event] = events.filter(({ model }) => model === 'slow');
        expect(event).toBeDefined();
        return event!;
      });
      expect(left.outcome).toBe('client_closed');
      expect(left.completionTokens).toBeGreaterThan(0);
      expect(left.completionTokens).toBeLessThan(SLOW.answerTokens);
      await eventually(async () => expect((await gateway.snapshot(caller.tenantId)).pendingHolds).toBe(0));
    });
  });
}

/** Runs a program to its end. Rejects with its errors if it fails. */
async function runProgram([interpreter, file]: Program['command'], input: object): Promise<Outcome[]> {
  const { stdout } = await promisify(execFile)(interpreter, [join(__dirname, file), JSON.stringify(input)], {
    cwd: ROOT,
    timeout: PROGRAM_TIMEOUT_MS,
    maxBuffer: OUTPUT_MAX_BYTES,
    env: programEnv(),
  });
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Outcome);
}

/** Without settings of clients. */
function programEnv(): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(OPENAI|LITELLM|LANGCHAIN|LANGSMITH|NODE_OPTIONS|https?_proxy|all_proxy)/i.test(name),
  );
  return {
    ...Object.fromEntries(inherited),
    ...pythonEnv,
    LANGSMITH_TRACING: 'false',
    // Otherwise litellm asks a server for a newer list of prices.
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  };
}
