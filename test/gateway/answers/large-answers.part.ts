import { MAX_INLINE_BYTES } from '../../../apps/gateway/src/inference/plain/answer-reader';
import { CAP, type CappedGateway, count } from './capped-gateway';
import { answers, type Play, usage } from '../backends/played-backend';
import { expectSettledAt } from '../use-gateway';

const TEXT = ' word'.repeat(CAP);
const ALTERNATIVES = 20;

/** An answer with all alternatives of each token. */
function withLogprobs(reported: number) {
  const entry = (i: number) => ({ token: ' word', logprob: -0.123456789 - i, bytes: [32, 119, 111, 114, 100] });
  const top_logprobs = Array.from({ length: ALTERNATIVES }, (_, i) => entry(i));
  const content = Array.from({ length: CAP }, () => ({ ...entry(0), top_logprobs }));
  const message = { role: 'assistant', content: TEXT };
  const choices = [{ index: 0, message, logprobs: { content }, finish_reason: 'length' }];
  return { choices, ...usage(13, reported) };
}

/** Answers that are too large to be read on the event loop. */
export function largeAnswersTests({ gateway, ask }: CappedGateway): void {
  const fields = { logprobs: true, top_logprobs: ALTERNATIVES };

  it.each([
    ['by the report of its backend', CAP, false],
    ['by our count if the report is impossible', 100 * CAP, true],
  ])('is read in a worker, sent unchanged and charged once %s', async (_, reported, estimated) => {
    const caller = await gateway.caller();
    const body = withLogprobs(reported);
    expect(JSON.stringify(body.choices).length).toBeGreaterThan(MAX_INLINE_BYTES);
    const parse = jest.spyOn(JSON, 'parse');
    const answer = await ask(caller, answers(body), fields);
    const sent = await answer.text();
    const longest = Math.max(...parse.mock.calls.map(([text]) => text.length));
    parse.mockRestore();
    expect(longest).toBeLessThan(MAX_INLINE_BYTES / 2);
    const { choices, usage: shown } = JSON.parse(sent) as { choices: unknown; usage: { completion_tokens: number } };
    expect(choices).toEqual(body.choices);
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ completionTokens: count(TEXT), estimated, outcome: 'complete' });
    expect(shown.completion_tokens).toBe(count(TEXT));
    await expectSettledAt(gateway, caller, BigInt(event!.costNanos));
  });

  it('that is no JSON is not charged', async () => {
    const caller = await gateway.caller();
    const json = '['.repeat(2 * MAX_INLINE_BYTES);
    const play: Play = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end(json);
    expect((await ask(caller, play, fields)).status).toBe(502);
    await expectSettledAt(gateway, caller, 0n);
  });
}
