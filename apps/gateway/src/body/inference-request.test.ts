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
