import type { UsageEvent } from '@tollgate/contracts';
import { WithheldEnd } from './served';

const event = { promptTokens: 3, cachedTokens: 0, completionTokens: 2, costNanos: '5000000000' } as UsageEvent;

/** An end that writes its usage, and how often it was made. */
function withheld() {
  const made: object[] = [];
  const end = new WithheldEnd({ completion: { reasoning_tokens: 1 } }, (usage) => {
    made.push(usage);
    return { bytes: JSON.stringify(usage), send: () => {} };
  });
  return { end, made };
}

describe('the withheld end of an answer', () => {
  it('has the settled usage with its details, and the cost for a key that wants it', () => {
    const usage = {
      prompt_tokens: 3,
      completion_tokens: 2,
      total_tokens: 5,
      completion_tokens_details: { reasoning_tokens: 1 },
    };
    expect(JSON.parse(String(withheld().end.of(event, false).bytes))).toEqual(usage);
    expect(JSON.parse(String(withheld().end.of(event, true).bytes))).toEqual({ ...usage, cost: 5 });
  });

  it('is made once, so that a repeat gets what the client gets, also if another event was recorded', () => {
    const { end, made } = withheld();
    const kept = end.of(event, true);
    expect(end.of({ ...event, completionTokens: 1 }, true)).toBe(kept);
    expect(made).toHaveLength(1);
  });
});
