import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { operatorWords, publicParam, publicWords } from './backend-words';

const SEED = 20_261_130;
const KNOWN = {
  model: 'public-model',
  innerModels: ['Qwen/Qwen3-8B-AWQ', 'tiny'],
  hosts: ['gpu7', '10.1.2.3'],
  fields: new Set(['messages', 'content', 'temperature', 'max_tokens', 'tools', 'function', 'name']),
  sent: { simulator: { answerTokens: 0, rules: [{ kind: 'x' }] }, top_k: 1 },
};
const forClient = (message: string) => publicWords(message, KNOWN);

/** Texts with a secret, which must be removed. */
const SECRETS = [
  'https://inference.internal.example.com:8443/v1/chat?key=1#a',
  'grpc+tls://gpu7:50051',
  'redis://:hunter2hunter2@10.0.0.7:6379/0',
  'data:image/png;base64,iVBORw0KGgo',
  '192.168.17.4',
  '192.168.17.4:8000',
  'fe80::1ff:fe23:4567:890a',
  '[2001:db8::7]:8000',
  'fd00:1234:5678:9abc:def0:1234:5678:9abc',
  'vllm-worker-3.cluster.local',
  'api.example.co.uk',
  'node17:30000',
  'localhost',
  'gpu7',
  '/srv/models/qwen3/config.json',
  '~/.cache/huggingface/token',
  '../weights/shard.bin',
  '/etc/passwd',
  'C:\\Users\\ops\\model.gguf',
  '\\\\nas7\\weights',
  'vllm/engine/async_llm_engine.py',
  'async_llm_engine.py:154',
  'Qwen/Qwen3-8B-AWQ',
  'qwen/qwen3-8b-awq',
  'sk-proj-Ab12Cd34Ef56',
  'sk-svc-0123456789',
  'hf_AbCdEfGhIjKlMnOp',
  'Bearer abcdefghij',
  'bearer "Zm9vYmFyYmF6"',
  'token=abcdef123',
  'api_key: abcdefgh',
  'Incorrect API key provided: abcdefgh',
  'AKIAIOSFODNN7EXAMPLE',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl',
  'd41d8cd98f00b204e9800998ecf8427e',
  '550e8400-e29b-41d4-a716-446655440000',
  'Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4',
  'ops@example.com',
];
const SAID = [
  'must',
  'be',
  'at',
  'most',
  '2',
  '0.5',
  'field',
  'messages.0.content',
  'max_tokens',
  '(got',
  '17)',
  'and/or',
];
const BETWEEN = [' ', '  ', '\n', ' "', '" ', ' (', ') ', ' <', '> ', ', ', '\t', " '", "' ", ': ', ' = '];

/** Whether the text contains the secret, or eight characters of it in a row. The words before a key are not secret. */
function leaks(text: string, secret: string): boolean {
  const words = text.toLowerCase();
  const hidden = secret.toLowerCase().replace(/^(?:bearer "?|token=|api_key: |incorrect api key provided: )/, '');
  if (words.includes(hidden)) return true;
  for (let at = 0; at + 8 <= hidden.length; at++) if (words.includes(hidden.slice(at, at + 8))) return true;
  return false;
}

describe('a backend’s message for a client', () => {
  it.each(SECRETS)('does not contain %s', (secret) => {
    for (const [before, after] of [
      ['no: ', ' was refused'],
      ['(', ')'],
      ['"', '"'],
      ['', ''],
      ['x\u200b ', '\u202e'],
      ['a=', ';'],
      ['\n', '.\n'],
    ])
      expect(leaks(forClient(before + secret + after) ?? '', secret)).toBe(false);
  });

  it('contains no secret, wherever the backend put it', async () => {
    await assertRuns(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom(...SAID, ...SECRETS, ...SECRETS), fc.constantFrom(...BETWEEN)), {
          minLength: 1,
          maxLength: 40,
        }),
        (parts) => {
          const told = forClient(parts.flat().join('')) ?? '';
          expect(told.length).toBeLessThanOrEqual(300);
          expect(told).not.toMatch(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/u);
          for (const [said] of parts)
            if (SECRETS.includes(said)) expect([said, leaks(told, said)]).toEqual([said, false]);
        },
      ),
      { seed: SEED, leastRuns: 500 },
    );
  });

  it('explains what is wrong with the request', () => {
    for (const said of [
      "'temperature' must be between 0 and 2.0, got 3.5.",
      'messages.0.content: Input should be a valid string [type=string_type, input_value=1]',
      'This model has a context of 4096 tokens; the token limit is exceeded by 17 (4113 > 4096).',
      'tools[0].function.name must match ^[a-zA-Z0-9_-]{1,64}$, e.g. get_weather and/or get_time',
      'Unsupported parameter: chat_template_kwargs. Skipping patternProperties is not possible.',
    ])
      expect(forClient(said)).toBe(said);
    expect(forClient('The model `Qwen/Qwen3-8B-AWQ` has no tiny tools')).toBe(
      'The model `public-model` has no public-model tools',
    );
    expect(forClient('bad value\nTraceback (most recent call last):\n  File "/a/b.py", line 3\nKeyError')).toBe(
      'bad value',
    );
    expect(forClient('Error: no\n    at parse (/srv/a.js:3:4)')).toBe('Error: no');
  });

  it('keeps the whole path of a member that the client sent, and no other name with dots', () => {
    for (const path of ['simulator.answerTokens', 'simulator.rules.0.kind'])
      expect(forClient(`${path}: must be an integer`)).toBe(`${path}: must be an integer`);
    for (const name of ['simulator.local', 'answerTokens.simulator', 'simulator.answerTokens.local', 'top_k.internal'])
      expect(forClient(`${name}: no`)).toBe('[removed]: no');
    expect(forClient('simulator.constructor: no')).toBe('[removed]: no');
  });

  it('is null if nothing meaningful is left', () => {
    for (const said of ['', ' \n', 'https://example.com/a', '/etc/passwd', '10.0.0.1:80', '\u202e\u0000'])
      expect(forClient(said)).toBeNull();
  });

  it('is cut at its limit, and no pattern takes quadratic time', () => {
    expect(forClient('no '.repeat(10_000))).toHaveLength(300);
    expect(forClient(`${'no '.repeat(99)}n😀😀`)).toBe(`${'no '.repeat(99)}n…`);
    const tookMs = (said: string): number => {
      const from = performance.now();
      forClient(said);
      operatorWords(said, null);
      return performance.now() - from;
    };
    // The least of several runs, as the machine may be busy during one.
    const least = (said: string) => Math.min(...Array.from({ length: 5 }, () => tookMs(said)));
    const plain = least('word '.repeat(13_000));
    for (const part of [
      'a',
      '0',
      'a.',
      'a/',
      '/',
      ':',
      '0:',
      'a@',
      '\\',
      '-',
      'a-',
      '.',
      '=',
      'e\u0301',
      'token',
      '\u200b',
    ]) {
      // The examined length is bounded, and no pattern backtracks over it more than once.
      const said = part.repeat(65_536 / part.length);
      expect(least(said)).toBeLessThan(20 * plain);
    }
  });
});

describe('a backend’s message for the log', () => {
  it('contains addresses, but no keys', () => {
    const said = 'connect to http://10.0.0.1:80/v1 with topsecret-1 and sk-abcdefgh\u202e failed\n\tat x';
    expect(operatorWords(said, 'Bearer topsecret-1')).toBe(
      'connect to http://10.0.0.1:80/v1 with [removed] and [removed] failed at x',
    );
  });
});

describe('the field that a backend blames', () => {
  it('is passed on if the request has such a field', () => {
    for (const param of ['messages', 'messages[0].content', 'messages.0.content', 'tools[12].function.name'])
      expect(publicParam(param, KNOWN.fields)).toBe(param);
    for (const param of [
      null,
      '',
      'model_path',
      'messages[0].secret',
      '/etc/passwd',
      'messages\n',
      'a'.repeat(99),
      '0',
    ])
      expect(publicParam(param, KNOWN.fields)).toBeNull();
  });
});
