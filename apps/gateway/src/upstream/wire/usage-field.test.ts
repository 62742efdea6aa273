import { readUsage } from './usage-field';

const COUNTS = { promptTokens: 7, cachedTokens: 0, completionTokens: 3 };
const REPORTED = { prompt_tokens: 7, completion_tokens: 3 };

describe('the usage of a backend', () => {
  const ABSENT = ['total_tokens', 'prompt_tokens_details', 'completion_tokens_details'];

  it.each(ABSENT)('is read although %s is null', (name) => {
    expect(readUsage({ ...REPORTED, [name]: null })).toEqual(COUNTS);
  });

  it.each([
    ['prompt_tokens_details', 'cached_tokens'],
    ['completion_tokens_details', 'reasoning_tokens'],
  ])('is read although %s.%s is null, and has the other details', (details, name) => {
    const usage = readUsage({ ...REPORTED, total_tokens: 10, [details]: { [name]: null, audio_tokens: 2 } });
    const of = details === 'prompt_tokens_details' ? 'promptDetails' : 'completionDetails';
    expect(usage).toEqual({ ...COUNTS, [of]: { audio_tokens: 2 } });
  });

  it('is unreadable if the total does not add up, or a count is null', () => {
    for (const usage of [
      { ...REPORTED, total_tokens: 11 },
      { ...REPORTED, total_tokens: 0 },
      { ...REPORTED, prompt_tokens: null, total_tokens: null },
    ])
      expect(readUsage(usage)).toBe('unreadable');
  });
});
