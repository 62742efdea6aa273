import { MAX_TOP_LOGPROBS } from '../../body/schemas';
import { MAX_ANSWER_BYTES } from '../../upstream/exchange/plain-answer';
import { maxAnswerBytes } from './answer-bytes';

describe('the bytes of a plain answer', () => {
  const chat = (body: object | null, choices = 1) => ({ kind: 'chat' as const, choices, body: body as null });
  it('are bounded by the held tokens and their alternatives', () => {
    const spare = maxAnswerBytes(chat({}), 0);
    expect(maxAnswerBytes(chat({}), 100) - spare).toBe(25_600);
    expect(maxAnswerBytes(chat({}, 3), 100) - spare).toBe(76_800);
    expect(maxAnswerBytes(chat({ logprobs: true, top_logprobs: 4 }), 100) - spare).toBe(6 * 25_600);
    expect(maxAnswerBytes(chat({ logprobs: 5 }), 100) - spare).toBe(7 * 25_600);
  });

  it('have room for the most alternatives if the body is not available', () => {
    const most = chat({ logprobs: true, top_logprobs: MAX_TOP_LOGPROBS });
    expect(maxAnswerBytes(chat(null), 100)).toBe(maxAnswerBytes(most, 100));
  });

  it('never exceed the limit of all answers, which embeddings may use in full', () => {
    expect(maxAnswerBytes(chat(null, 100), 1_000_000)).toBe(MAX_ANSWER_BYTES);
    expect(maxAnswerBytes({ kind: 'embedding', choices: 0, body: null }, 0)).toBe(MAX_ANSWER_BYTES);
  });
});
