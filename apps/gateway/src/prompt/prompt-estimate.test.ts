import { bodyRules } from '../body/body-rules.fixture';
import { readRequest } from '../body/inference-request';
import { PromptEstimate } from './prompt-estimate';

const MODEL = bodyRules({ contextTokens: 1_000_000 });
const request = () =>
  readRequest('chat', Buffer.from('{"model":"m","messages":[{"role":"user","content":"one two three"}]}'), () => MODEL);

it('an estimate counts its prompt once, keeps the count for all that have it, and leaves the request alone', () => {
  const bound = PromptEstimate.toHold(Object.freeze(request()), MODEL, 1);
  expect([bound.isExact, bound.known() === bound]).toEqual([false, true]);
  const counted = bound.countedWithinContext();
  expect(counted.exactCount).toBeLessThan(bound.upperBound);
  for (const later of [bound.known(), bound.counted(), bound.countedWithinContext(), counted.known()])
    expect(later).toBe(counted);
});

it('a prompt that a worker has counted is not counted again', () => {
  const counted = { total: 20, longest: 20, most: 25 };
  const { exactCount, upperBound } = PromptEstimate.toHold({ ...request(), body: null, counted }, MODEL, 1);
  expect({ exactCount, upperBound }).toEqual({ exactCount: 20, upperBound: 25 });
});
