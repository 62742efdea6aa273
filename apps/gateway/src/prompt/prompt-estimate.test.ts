import { bodyRules } from '../body/body-rules.fixture';
import { readRequest } from '../body/inference-request';
import { PromptEstimate } from './prompt-estimate';

const LARGE = bodyRules({ contextTokens: 1_000_000 });
const request = () =>
  readRequest('chat', Buffer.from('{"model":"m","messages":[{"role":"user","content":"one two three"}]}'), () => LARGE);

it('an estimate counts its prompt once, keeps the count for all that have it, and leaves the request alone', () => {
  const bound = PromptEstimate.toHold(Object.freeze(request()), LARGE, 1);
  expect([bound.isExact, bound.known() === bound]).toEqual([false, true]);
  const counted = bound.countedWithinContext();
  expect(counted.exactCount).toBeLessThan(bound.upperBound);
  for (const later of [bound.known(), bound.counted(), bound.countedWithinContext(), counted.known()])
    expect(later).toBe(counted);
});

it('a prompt that a worker has counted is not counted again', () => {
  const counted = { total: 20, longest: 20, least: 15, most: 25 };
  const { exactCount, upperBound, likely } = PromptEstimate.toHold({ ...request(), body: null, counted }, LARGE, 1);
  expect({ exactCount, upperBound }).toEqual({ exactCount: 20, upperBound: 25 });
  expect(likely).toEqual({ least: 15, most: 25 });
});

const CONTEXT = 8_192;
const MODEL = { ...bodyRules({ contextTokens: CONTEXT, maxOutputTokens: CONTEXT, clamp: true }), id: 'm' };
const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } };

/** Our count of a chat with this many words, and the output that a backend is asked for. */
function asked(words: number, fields: object = {}): { ours: number; output: number } {
  const body = { model: 'm', messages: [{ role: 'user', content: ' word'.repeat(words) }], ...fields };
  const request = readRequest('chat', Buffer.from(JSON.stringify(body)), () => MODEL);
  const output = Math.min(request.maxTokens ?? Infinity, MODEL.maxOutputTokens);
  const prompt = PromptEstimate.toHold(request, MODEL, output);
  return { ours: prompt.counted().exactCount, output: prompt.roomFor(output) };
}

describe('the output of a request without max_tokens', () => {
  it.each([1, 100, 3_000, 6_000])('leaves room for a backend that counts more: %i words', (words) => {
    const { ours, output } = asked(words);
    // The system message of a template, and a tokenizer with a tenth more tokens.
    expect(1.1 * ours + 60 + output).toBeLessThanOrEqual(CONTEXT);
    expect(output).toBeGreaterThan(CONTEXT - 1.2 * ours - 100);
  });

  it('leaves room for the texts that a template adds for tools', () => {
    const [without, one, ten] = [[], [tool], Array.from({ length: 10 }, () => tool)].map((tools) => {
      const { ours, output } = asked(100, { tools });
      return CONTEXT - ours - output;
    });
    expect(one! - without!).toBeGreaterThan(32);
    expect(ten! - one!).toBeGreaterThan(9 * 8);
  });

  it('is half of what is left of the context, if that is little', () => {
    const { ours, output } = asked(8_000);
    expect(output).toBe(Math.ceil((CONTEXT - ours) / 2));
  });
});

describe('the output that a client names', () => {
  it('is asked for if it fits by our count, and else leaves the same room', () => {
    const { ours, output } = asked(3_000);
    const rest = CONTEXT - ours;
    expect(asked(3_000, { max_tokens: rest }).output).toBe(rest);
    expect(asked(3_000, { max_completion_tokens: 10 }).output).toBe(10);
    expect(asked(3_000, { max_tokens: rest + 1 }).output).toBe(output);
  });
});
