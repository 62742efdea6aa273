import { answers, streams, usage, usePlayedBackend } from '../backends/played-backend';
import { type Caller, expectSettledAt, useGateway } from '../use-gateway';

/** Tokens that engines rightly count although nobody sends or receives them: the ends of texts, and stop sequences. */
const backend = usePlayedBackend(
  'own',
  (url) =>
    `  - { id: vectors, kind: embedding, contextTokens: 256,
      price: { input: '1', output: '0' }, backends: [{ url: '${url}' }] }`,
);
const gateway = useGateway({ yaml: backend.yaml });
const MANY = 100;
/** "user" and one word, 3 for the message and 3 for the prompt. */
const messages = [{ role: 'user', content: 'Count' }];
const PROMPT = 8;

async function ask(caller: Caller, path: string, body: object): Promise<void> {
  const answer = await gateway.post(path, body, caller);
  expect(answer.status).toBe(200);
  await answer.text();
}

describe('the special tokens at the ends of each prompt', () => {
  it.each([
    ['texts', 'word', 3, true],
    ['lists of tokens', [1_000], 3, true],
    ['more than two', 'word', 7, false],
  ])('are held and charged for each input of embeddings: %s', async (_, input, tokensEach, isBelieved) => {
    const caller = await gateway.caller();
    const data = Array.from({ length: MANY }, (__, index) => ({ object: 'embedding', index, embedding: [0.5] }));
    backend.state.play = answers({ data, ...usage(MANY * tokensEach, 0) });
    await ask(caller, '/v1/embeddings', { model: 'vectors', input: Array(MANY).fill(input) });
    const promptTokens = isBelieved ? MANY * tokensEach : MANY;
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ promptTokens, estimated: !isBelieved, overrunNanos: '0' });
    await expectSettledAt(gateway, caller, BigInt(promptTokens * 1_000));
  });

  it('are held and charged for each prompt of a completion', async () => {
    const caller = await gateway.caller();
    const choices = Array.from({ length: MANY }, (_, index) => ({ index, text: ' a', finish_reason: 'length' }));
    backend.state.play = answers({ choices, ...usage(MANY * 3, MANY) });
    await ask(caller, '/v1/completions', { model: 'own', prompt: Array(MANY).fill('word'), max_tokens: 1 });
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ promptTokens: MANY * 3, estimated: false, overrunNanos: '0' });
  });
});

it('the end of each choice is charged, also of choices without text', async () => {
  const caller = await gateway.caller();
  const choices = Array.from({ length: MANY }, (_, index) => ({ index, text: '', finish_reason: 'stop' }));
  backend.state.play = answers({ choices, ...usage(MANY, MANY) });
  await ask(caller, '/v1/completions', { model: 'own', prompt: Array(MANY).fill('word'), max_tokens: 1 });
  const [event] = await gateway.events(caller.tenantId, 1);
  expect(event).toMatchObject({ completionTokens: MANY, estimated: false, overrunNanos: '0' });
});

describe.each([true, false])('a stop sequence (stream: %s)', (stream) => {
  const STOP = ' word'.repeat(200);
  async function stopped(reported: number, stop: string | string[], n = 1): Promise<object> {
    const caller = await gateway.caller();
    const all = Array.from({ length: n }, (_, index) => index);
    backend.state.play = stream
      ? streams(
          all.map((index) => ({ index, delta: { content: ' x' } })),
          { choices: all.map((index) => ({ index, delta: {}, finish_reason: 'stop' })), ...usage(PROMPT, reported) },
        )
      : answers({
          choices: all.map((index) => ({
            index,
            message: { role: 'assistant', content: ' x' },
            finish_reason: 'stop',
          })),
          ...usage(PROMPT, reported),
        });
    await ask(caller, '/v1/chat/completions', { model: 'own', messages, stream, stop, n, max_tokens: 500 });
    return (await gateway.events(caller.tenantId, 1))[0]!;
  }

  it('that was generated is charged, although it is not delivered', async () => {
    for (const [stop, n] of [
      [STOP, 1],
      [['a', STOP, 'bc'], 1],
      [STOP, 3],
    ] as const) {
      const completionTokens = n * 201;
      const event = await stopped(completionTokens, stop as string | string[], n);
      expect(event).toMatchObject({ completionTokens, estimated: false, overrunNanos: '0' });
    }
  });

  it('explains no more than its own tokens', async () => {
    expect(await stopped(201, 'word')).toMatchObject({ completionTokens: 1, estimated: true });
    expect(await stopped(450, STOP)).toMatchObject({ completionTokens: 1, estimated: true });
  });
});
