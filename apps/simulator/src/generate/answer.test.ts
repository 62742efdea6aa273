import { composeAnswer, type Brief } from './answer';

describe('an answer of plain words', () => {
  const brief = (answerTokens: number, maxTokens: number): Brief => ({
    answerTokens,
    maxTokens,
    stop: [],
    form: { kind: 'words' },
  });

  it('that max_tokens cuts is never made as a whole, however long it would be', () => {
    const answer = composeAnswer(brief(Number.MAX_SAFE_INTEGER, 5), 1);
    expect(answer).toMatchObject({ completionTokens: 5, finishReason: 'length' });
  });

  it('that max_tokens cuts is the beginning of the whole answer', () => {
    for (let seed = 0; seed < 20; seed++) {
      const { pieces } = composeAnswer(brief(60, Infinity), seed);
      for (let maxTokens = 1; maxTokens <= 61; maxTokens++) {
        const cut = composeAnswer(brief(60, maxTokens), seed);
        expect(cut.pieces).toEqual(pieces.slice(0, maxTokens));
        expect(cut.finishReason).toBe(maxTokens < 60 ? 'length' : 'stop');
      }
    }
  });
});
