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

  it.each([
    ['of Moonshot', { cached_tokens: 5 }, 5],
    ['of DeepSeek', { prompt_cache_hit_tokens: 5, prompt_cache_miss_tokens: 2 }, 5],
    ['of both forms', { cached_tokens: 5, prompt_tokens_details: { cached_tokens: 4 } }, 4],
    ['beyond the prompt', { cached_tokens: 8 }, 7],
    ['that are no number', { cached_tokens: '5' }, 0],
    ['below zero', { cached_tokens: -5 }, 0],
  ])('has the cached tokens %s', (_, usage, cachedTokens) => {
    expect(readUsage({ ...REPORTED, ...usage })).toMatchObject({ ...COUNTS, cachedTokens });
  });

  it('has in its completion what only the total counts', () => {
    const completion_tokens_details = { reasoning_tokens: 317, accepted_prediction_tokens: 5 };
    expect(readUsage({ ...REPORTED, total_tokens: 327, completion_tokens_details })).toEqual({
      ...COUNTS,
      completionTokens: 320,
      completionDetails: { reasoning_tokens: 317, accepted_prediction_tokens: 5 },
    });
    expect(readUsage({ ...REPORTED, total_tokens: 327 })).toEqual({ ...COUNTS, completionTokens: 320 });
  });

  it('is unreadable if the total is below its parts or no count, or a count is null', () => {
    for (const usage of [
      { ...REPORTED, total_tokens: 9, completion_tokens_details: { reasoning_tokens: -1 } },
      { ...REPORTED, total_tokens: 10.5 },
      { ...REPORTED, total_tokens: 2 ** 31 },
      { ...REPORTED, total_tokens: 0 },
      { ...REPORTED, prompt_tokens: null, total_tokens: null },
    ])
      expect(readUsage(usage)).toBe('unreadable');
  });
});
