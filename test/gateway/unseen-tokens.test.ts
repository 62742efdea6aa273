import { answers, usage, usePlayedBackend } from './played-backend';
import { type Caller, expectSettledAt, useGateway } from './use-gateway';

/** Tokens that engines rightly count although nobody sends or receives them. */
const backend = usePlayedBackend(
  'own',
  (url) =>
    `  - { id: vectors, kind: embedding, contextTokens: 256,
      price: { input: '1', output: '0' }, backends: [{ url: '${url}' }] }`,
);
const gateway = useGateway({ yaml: backend.yaml });
const MANY = 100;

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
