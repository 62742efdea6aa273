import { metrics } from '@tollgate/runtime';
import { answers, finish, type Play, streams, usage, usePlayedBackend } from './played-backend';
import { type Caller, expectSettledAt, useGateway } from '../use-gateway';

/** `wordy` may give more output than its fallback. The backend knows both. */
const CAP = 100;
const backend = usePlayedBackend(
  'own',
  (url) => `
  - { id: wordy, kind: chat, contextTokens: 8192, maxOutputTokens: 4096, fallback: [brief],
      price: { input: '10', output: '20' }, backends: [{ url: '${url}' }] }
  - { id: brief, kind: chat, contextTokens: 8192, maxOutputTokens: ${CAP},
      price: { input: '1', output: '2' }, backends: [{ url: '${url}', model: inner-brief }] }`,
);
const gateway = useGateway({ yaml: backend.yaml });
/** The nanos of a token of `brief`. */
const BRIEF = { input: 1_000n, output: 2_000n };
const PROMPT_TOKENS = 13;
const messages = [{ role: 'user', content: 'Say something about gateways.' }];
const words = (tokens: number) => ' word'.repeat(tokens);
const choice = (message: object) => ({ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' });

/** Asks `model` without naming a limit. `brief` answers with `play`, and `wordy` fails. */
async function ask(caller: Caller, model: string, play: Play, fields: object) {
  const sent: unknown[] = [];
  backend.state.play = (response, asked) => {
    if (asked['model'] !== 'inner-brief') return void response.writeHead(500).end('{}');
    sent.push(asked['max_tokens']);
    play(response, asked);
  };
  const response = await gateway.post('/v1/chat/completions', { model, messages, ...fields }, caller);
  const text = await response.text();
  // Also when the answer is a fallback's.
  expect(sent).toEqual([CAP]);
  return { status: response.status, text };
}

/** What is recorded and charged, by the fallback and asked directly. */
async function bothWays(play: Play, fields: object, check: (answer: { status: number; text: string }) => void) {
  const charges = [];
  for (const model of ['wordy', 'brief']) {
    const caller = await gateway.caller();
    check(await ask(caller, model, play, fields));
    const [event] = await gateway.events(caller.tenantId, 1);
    await expectSettledAt(gateway, caller, BigInt(event!.costNanos));
    const { promptTokens, completionTokens, costNanos, overrunNanos, outcome, estimated } = event!;
    expect(event!.model).toBe('brief');
    charges.push({ promptTokens, completionTokens, costNanos, overrunNanos, outcome, estimated });
  }
  expect(charges[0]).toEqual(charges[1]);
  return charges[0]!;
}

async function overlong(): Promise<number> {
  const counter = metrics.getSingleMetric('tollgate_overlong_answers_total')!;
  const { values } = (await counter.get()) as { values: { labels: { model?: string }; value: number }[] };
  return values.filter(({ labels }) => labels.model === 'brief').reduce((sum, { value }) => sum + value, 0);
}

describe('a fallback that is asked for less output than its request may have', () => {
  const one = (content: string) => ({ delta: { content } });
  const many = Array.from({ length: 3 * CAP }, () => one(' word'));
  it.each<[string, Play, boolean]>([
    [
      'a plain answer',
      answers({ choices: [choice({ content: words(3 * CAP) })], ...usage(PROMPT_TOKENS, 3 * CAP) }),
      false,
    ],
    ['a stream', streams(many, finish(usage(PROMPT_TOKENS, 3 * CAP))), true],
    ['a stream of one chunk', streams([one(words(3 * CAP))], finish(usage(PROMPT_TOKENS, 3 * CAP))), true],
    [
      'a stream with its text at the end',
      streams([], finish(usage(PROMPT_TOKENS, 3 * CAP), one(words(3 * CAP)))),
      true,
    ],
  ])('is cut, counted and charged at that, as if it had been asked directly: %s', async (_, play, stream) => {
    const before = await overlong();
    const charged = await bothWays(play, { stream }, ({ status, text }) => {
      expect([status, text.match(/ word/g)!.length]).toEqual([200, CAP]);
      expect(text).toContain('"finish_reason":"length"');
    });
    expect(charged).toMatchObject({ completionTokens: CAP, overrunNanos: '0', outcome: 'complete', estimated: true });
    const cost = BigInt(charged.promptTokens) * BRIEF.input + BigInt(CAP) * BRIEF.output;
    expect(BigInt(charged.costNanos)).toBe(cost);
    // Each of both is named to the operator.
    expect(await overlong()).toBe(before + 2);
  });

  it('is refused and not charged, if its answer cannot be cut', async () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: words(3 * CAP) } };
    const play = answers({ choices: [choice({ content: null, tool_calls: [call] })], ...usage(PROMPT_TOKENS, CAP) });
    const caller = await gateway.caller();
    expect((await ask(caller, 'wordy', play, {})).status).toBe(502);
    await expectSettledAt(gateway, caller, 0n);
  });

  it.each([false, true])(
    'has an overrun for a report above that, as if asked directly (stream: %s)',
    async (stream) => {
      const reported = 1.5 * CAP;
      const play = stream
        ? streams([one(words(CAP))], finish(usage(PROMPT_TOKENS, reported)))
        : answers({ choices: [choice({ content: words(CAP) })], ...usage(PROMPT_TOKENS, reported) });
      const charged = await bothWays(play, { stream }, ({ status }) => expect(status).toBe(200));
      expect(charged).toMatchObject({ completionTokens: reported, estimated: false, outcome: 'complete' });
      expect(BigInt(charged.overrunNanos)).toBeGreaterThan(0n);
    },
  );
});
