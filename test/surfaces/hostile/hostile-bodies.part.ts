import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import type { Target } from './hostile.test';
import { OPERATOR_SECRET, type Services } from '../services';

const SEED = Number(process.env['TOLLGATE_TEST_SEED'] ?? 20_261_122);
const RUNS = 200;

/** Text of JSON values, and of what is not JSON, that parsers treat differently. */
const HOSTILE: readonly string[] = [
  ...[10, 1_000, 100_000].flatMap((depth) => [
    '['.repeat(depth) + ']'.repeat(depth),
    '{"a":'.repeat(depth) + '1' + '}'.repeat(depth),
    '['.repeat(depth),
  ]),
  ...['1e400', '-1e400', '1e-400', '-0', '0.1e1000', '1E308', '9007199254740993', '1'.repeat(400), '01', '+1', '.5'],
  ...['1.', '0x10', 'NaN', 'Infinity', '1_000', '4294967296', '2147483648', '-2147483649', '1e2147483648'],
  ...['"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\u2028"', '"\\x41"', '"\n"', '"\t"', '"\\', '"', "'a'"],
  ...['{"__proto__":{"a":1}}', '{"constructor":{"prototype":{"a":1}}}', '{"a":1,"a":2}', '{"\\u0061":1,"a":2}'],
  ...['[1,]', '{"a":1,}', '[1 2]', '{a:1}', '/* */1', 'undefined', 'null', 'true', '[]', '{}', '', ' '],
  `"${'a'.repeat(100_000)}"`,
  `{"${'a'.repeat(100_000)}":1}`,
];
/** Bytes that are not UTF-8, as a string of JSON. */
const BAD_BYTES = ['ff', 'c0af', 'eda080', 'f4908080', 'c3', 'e282', 'f0808080', 'efbfbf', 'efbbbf'].map((hex) =>
  Buffer.concat([Buffer.from('"'), Buffer.from(hex, 'hex'), Buffer.from('"')]),
);
const PLACE = '"<here>"';

/** Bodies with a place for a hostile value, and where they go. */
function places({ publicUrl, operatorUrl }: Services, { key, token }: Target) {
  const messages = [{ role: 'user', content: 'Hello' }];
  const chat = { model: 'sim-small', messages, max_tokens: 2 };
  const here = '<here>';
  const schema = (value: unknown) => ({ type: 'json_schema', json_schema: { name: 'a', schema: value } });
  const inference: [path: string, body: unknown][] = [
    ['chat/completions', here],
    ...['model', 'messages', 'max_tokens', 'temperature', 'n', 'stop', 'seed', 'stream', 'logit_bias', 'user'].map(
      (name): [string, unknown] => ['chat/completions', { ...chat, [name]: here }],
    ),
    ...['tools', 'tool_choice', 'response_format', 'stream_options', 'metadata', 'simulator', 'unknown', 'top_k'].map(
      (name): [string, unknown] => ['chat/completions', { ...chat, [name]: here }],
    ),
    ['chat/completions', { ...chat, messages: [{ role: 'user', content: here }] }],
    ['chat/completions', { ...chat, messages: [{ role: here, content: 'a' }] }],
    ['chat/completions', { ...chat, messages: [{ role: 'user', content: [{ type: 'text', text: here }] }] }],
    ['chat/completions', { ...chat, tools: [{ type: 'function', function: { name: 'a', parameters: here } }] }],
    ['chat/completions', { ...chat, response_format: schema(here) }],
    ['completions', { model: 'sim-small', prompt: here, max_tokens: 2 }],
    ['completions', { model: 'sim-small', prompt: [here], max_tokens: 2 }],
    ['embeddings', { model: 'sim-embed', input: here }],
    ['embeddings', { model: 'sim-embed', input: [here] }],
    ['embeddings', { model: 'sim-embed', input: 'a', dimensions: here }],
  ];
  const account = ['name', 'profile', 'expiresAt', 'owner', 'tags', 'unknown'].map((field) => ({
    name: 'a',
    [field]: here,
  }));
  return [
    ...inference.map(([path, body]) => ({ url: `${publicUrl}/v1/${path}`, credential: key, body })),
    ...[here, ...account].map((body) => ({ url: `${publicUrl}/_api/v1/keys`, credential: token, body })),
    ...[here, { name: here }, { name: 'a', plan: here }].map((body) => ({
      url: `${operatorUrl}/_operator/v1/tenants`,
      credential: OPERATOR_SECRET,
      body,
    })),
  ];
}

export function hostileBodies(services: Services, target: Target): void {
  const expectAnswer = async (place: ReturnType<typeof places>[number], value: Buffer) => {
    const [before, after] = JSON.stringify(place.body).split(PLACE);
    const sent = Buffer.concat([Buffer.from(before!), value, Buffer.from(after!)]);
    const answer = await fetch(place.url, {
      method: 'POST',
      headers: { authorization: `Bearer ${place.credential}`, 'content-type': 'application/json' },
      body: sent,
    });
    const text = await answer.text();
    const shown = [place.url, JSON.stringify(place.body), value.toString('latin1').slice(0, 60), answer.status];
    expect([...shown, answer.status < 500]).toEqual([...shown, true]);
    if (answer.status < 400) return;
    expect(JSON.parse(text)).toMatchObject({ error: { message: expect.any(String), code: expect.any(String) } });
    expect(text.length).toBeLessThan(4_096);
  };

  describe('a body with a hostile value', () => {
    it('gets an answer that is not 5xx, be it deep, huge, twice, or not JSON', async () => {
      const value = fc.oneof(
        { weight: 3, arbitrary: fc.constantFrom(...HOSTILE).map((text) => Buffer.from(text)) },
        { weight: 1, arbitrary: fc.constantFrom(...BAD_BYTES) },
        { weight: 1, arbitrary: fc.json().map((text) => Buffer.from(text)) },
        { weight: 1, arbitrary: fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)) },
      );
      await assertRuns(
        fc.asyncProperty(fc.nat(places(services, target).length - 1), value, (which, bytes) =>
          expectAnswer(places(services, target)[which]!, bytes),
        ),
        { leastRuns: RUNS, seed: SEED },
      );
    });

    it('gets an answer that is not 5xx, be it the deepest or the largest, in every place', async () => {
      const worst = [HOSTILE[6]!, HOSTILE[7]!, '1e400', '"\\ud800"'].map((text) => Buffer.from(text));
      for (const place of places(services, target))
        for (const value of [...worst, BAD_BYTES[0]!]) await expectAnswer(place, value);
    });
  });
}
