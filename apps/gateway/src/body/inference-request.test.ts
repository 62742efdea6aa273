import type { InferenceKind } from '@tollgate/contracts';
import { InferenceError } from '../inference-errors';
import { bodyRules } from './body-rules.fixture';
import { readRequest } from './inference-request';
import type { BodyRules } from './rules';

const CHAT = { model: 'm', messages: [{ role: 'user', content: 'x' }] };
const read = (kind: InferenceKind, body: object, rules: Partial<BodyRules> = {}) =>
  readRequest(kind, Buffer.from(JSON.stringify(body)), () =>
    bodyRules({ kind: kind === 'embedding' ? 'embedding' : 'chat', ...rules }),
  );
const request = (body: object) => read('chat', body);
const refusalOf = (...args: Parameters<typeof read>) => {
  try {
    return read(...args) && null;
  } catch (error) {
    const { status, code, param, message } = error as InferenceError;
    return { status, code, param, message };
  }
};

describe('top_logprobs', () => {
  it.each([{}, { logprobs: false }, { logprobs: null }])('may be 0 for none, which is not sent on: %j', (more) => {
    const sent = (body: object) => request(body).outgoing.fields.toString();
    expect(sent({ ...CHAT, ...more, top_logprobs: 0 })).toBe(sent({ ...CHAT, ...more }));
    expect(() => request({ ...CHAT, ...more, top_logprobs: 1 })).toThrow(InferenceError);
  });

  it('is sent on with logprobs, also as 0', () => {
    const { fields } = request({ ...CHAT, logprobs: true, top_logprobs: 0 }).outgoing;
    expect(fields.toString()).toContain('"logprobs":true,"top_logprobs":0');
  });
});

describe('a token id', () => {
  const FIELDS = [
    ['completion', 'prompt'],
    ['embedding', 'input'],
  ] as const;

  it.each(FIELDS)('beyond the vocabulary of the model is refused, with its place: %s', (kind, field) => {
    const rules = { vocabularyTokens: 100 };
    const refused = (prompts: unknown) => refusalOf(kind, { model: 'm', [field]: prompts }, rules);
    for (const prompts of ['a', ['a', 'b'], [0, 99], [[0], [99, 1]]]) expect(refused(prompts)).toBeNull();
    for (const [prompts, place] of [
      [[0, 99, 100, 200], '[2]'],
      [[[0], [1, 2 ** 31 - 1]], '[1][1]'],
      [['a', [100]], '[1][0]'],
    ] as const)
      expect(refused(prompts)).toEqual({
        status: 400,
        code: 'invalid_value',
        param: field + place,
        message: `'${field}${place}' must be a token id below 100 for the model 'm'.`,
      });
  });

  it.each(FIELDS)('is an integer of 32 bits without a sign if the vocabulary is not known: %s', (kind, field) => {
    const refused = (prompts: unknown) => refusalOf(kind, { model: 'm', [field]: prompts });
    for (const prompts of [[2 ** 31 - 1], [[0, 2 ** 31 - 1]]]) expect(refused(prompts)).toBeNull();
    for (const id of [-1, 2 ** 31, 1.5])
      for (const [prompts, place] of [
        [[0, id], '[1]'],
        [[[0], [0, id]], '[1][1]'],
      ] as const)
        expect(refused(prompts)).toMatchObject({ status: 400, param: field + place });
  });

  it('of the prompts is known: the largest', () => {
    const largest = (prompt: unknown) => read('completion', { model: 'm', prompt }).largestTokenId;
    expect([largest('a'), largest(['a']), largest([3, 9, 4]), largest(['a', [3], [9, 0]])]).toEqual([null, null, 9, 9]);
    expect(read('chat', CHAT).largestTokenId).toBeNull();
  });
});

describe('vectors beyond the limit of an answer', () => {
  const LIMIT_BYTES = 96 * 2 ** 20;
  const refused = (inputs: number, more: object, rules: Partial<BodyRules>) =>
    refusalOf('embedding', { model: 'm', input: Array.from({ length: inputs }, () => 'a'), ...more }, rules);

  it.each<[string, object, Partial<BodyRules>, number]>([
    ['the model’s dimensions', {}, { dimensions: 3_072 }, 1_488],
    ['as floats', { encoding_format: 'float' }, { dimensions: 3_072 }, 1_488],
    ['dimensions of the request', { dimensions: 4_096 }, { dimensions: null }, 1_116],
    ['both: those of the request', { dimensions: 4_096 }, { dimensions: 3 }, 1_116],
    ['in base64', { encoding_format: 'base64' }, { dimensions: 10_000 }, 1_885],
  ])('are refused before any work, and the most inputs are named: %s', (_, more, rules, most) => {
    expect(refused(most, more, rules)).toBeNull();
    const refusal = refused(most + 1, more, rules);
    expect(refusal).toMatchObject({ status: 400, code: 'invalid_value', param: 'input' });
    expect(refusal!.message).toContain(`at most ${most} items`);
  });

  it('are allowed in base64 as many as fit, and the refusal says so', () => {
    const { message } = refused(2_048, {}, { dimensions: 3_072 })!;
    expect(message).toBe(
      "'input' must have at most 1488 items for the model 'm': more vectors of 3072 numbers would exceed the limit " +
        "of an answer, 96 MiB. With 'encoding_format': 'base64', at most 2048.",
    );
    expect(refused(2_048, { encoding_format: 'base64' }, { dimensions: 3_072 })).toBeNull();
    expect(2_048 * 3_072 * (16 / 3)).toBeLessThan(LIMIT_BYTES);
  });

  it('are not refused if the dimensions are small or not known', () => {
    expect(refused(2_048, {}, { dimensions: null })).toBeNull();
    expect(refused(2_048, { dimensions: 256 }, { dimensions: 3_072 })).toBeNull();
    expect(refused(2_048, { dimensions: null }, { dimensions: 1_024 })).toBeNull();
  });

  it('of a single input are refused by their dimensions', () => {
    expect(refused(1, { dimensions: 5_000_000 }, {})).toMatchObject({ status: 400, param: 'dimensions' });
    expect(refused(1, { dimensions: Number.MAX_SAFE_INTEGER }, {})).toMatchObject({ param: 'dimensions' });
  });
});
