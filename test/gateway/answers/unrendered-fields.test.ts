import { answers, usage, usePlayedBackend } from '../backends/played-backend';
import { expectSettledAt, useGateway } from '../use-gateway';

const backend = usePlayedBackend(
  'own',
  (url) =>
    `  - { id: vllm, kind: chat, contextTokens: 131072, maxOutputTokens: 4096,
      price: { input: '1', output: '2' }, backends: [{ url: '${url}', dialect: vllm }] }`,
);
const gateway = useGateway({ yaml: backend.yaml });
/** "user" and 9 words, 3 for the message and 3 for the prompt. */
const prose = 'Please tell me the name of this old city';
const messages = [{ role: 'user', content: prose }];
const PROMPT = 16;
const ANSWER = 1;

/** About 18 tokens a field. */
function schemaOf(fields: number): object {
  const field = (i: number) => [`field_${i}`, { type: 'string', description: 'A field of the answer.' }] as const;
  return { type: 'object', properties: Object.fromEntries(Array.from({ length: fields }, (_, i) => field(i))) };
}
const tool = (name: string) => ({ type: 'function', function: { name, parameters: schemaOf(40) } });
const one = { type: 'function', function: { name: 'f' } };
const jsonSchema = (fields: number) => ({ type: 'json_schema', json_schema: { name: 'x', schema: schemaOf(fields) } });

async function charged(fields: object, reported: number): Promise<{ promptTokens: number; estimated: boolean }> {
  const caller = await gateway.caller();
  const message = { role: 'assistant', content: '{}' };
  backend.state.play = answers({ choices: [{ index: 0, message, finish_reason: 'stop' }], ...usage(reported, ANSWER) });
  const answer = await gateway.post('/v1/chat/completions', { model: 'vllm', messages, ...fields }, caller);
  expect(answer.status).toBe(200);
  const [event] = await gateway.events(caller.tenantId, 1);
  await expectSettledAt(gateway, caller, BigInt(event!.promptTokens * 1_000 + ANSWER * 2_000));
  return event!;
}

describe('what a template leaves out of earlier answers', () => {
  const thought = 'I wonder what the name of this old city may have been at that time. '.repeat(40);
  const answerWith = (fields: object) => [...messages, { role: 'assistant', ...fields }, ...messages];
  /** 5 for "assistant", the answer and the message. */
  const WHOLE = 2 * (PROMPT - 3) + 5 + 3;

  it.each([
    ['reasoning', answerWith({ content: 'Rome', reasoning_content: thought })],
    ['reasoning by its other name', answerWith({ content: 'Rome', reasoning: thought })],
    ['reasoning within the text', answerWith({ content: `<think>${thought}</think>Rome` })],
    ['reasoning in a body that a worker reads', answerWith({ content: 'Rome', reasoning: thought.repeat(20) })],
    ['a refusal', answerWith({ content: 'Rome', refusal: thought })],
  ])('is charged only if the engine counted it: %s', async (_, chat) => {
    expect(await charged({ messages: chat }, WHOLE)).toMatchObject({ promptTokens: WHOLE, estimated: false });
    expect(await charged({ messages: chat }, 600)).toMatchObject({ promptTokens: 600, estimated: false });
    expect(await charged({ messages: chat }, 8)).toMatchObject({ estimated: true });
  });

  it('is not its text, nor a word of the user', async () => {
    for (const chat of [
      answerWith({ content: thought }),
      answerWith({ content: `<think>a</think>${thought}` }),
      [...messages, { role: 'user', content: `<think>${thought}</think>` }],
    ])
      expect(await charged({ messages: chat }, WHOLE)).toMatchObject({ estimated: true });
  });
});

describe('a field that not every engine shows the model', () => {
  it.each([
    ['a schema', { response_format: jsonSchema(40) }],
    ['a schema in a body that a worker reads', { response_format: jsonSchema(800) }],
    ['a grammar', { guided_json: schemaOf(40) }],
    ['the older form of tools', { functions: [tool('f').function] }],
    ['tools that may not be called', { tools: [tool('f')], tool_choice: 'none' }],
    ['tools beside the one to call', { tools: [tool('f'), tool('g')], tool_choice: one }],
  ])('is charged only if the engine counted it: %s', async (_, fields) => {
    expect(await charged(fields, PROMPT)).toMatchObject({ promptTokens: PROMPT, estimated: false });
    expect(await charged(fields, 500)).toMatchObject({ promptTokens: 500, estimated: false });
    // Less than the messages have.
    expect(await charged(fields, 4)).toMatchObject({ estimated: true });
  });

  it.each([
    ['tools', { tools: [tool('f')] }],
    ['tools without a choice', { tools: [tool('f')], tool_choice: null }],
    ['tools that may be called', { tools: [tool('f')], tool_choice: 'auto' }],
    ['tools of which one must be called', { tools: [tool('f')], tool_choice: 'required' }],
  ])('is not one that all show: %s', async (_, fields) => {
    const { promptTokens, estimated } = await charged(fields, PROMPT);
    expect([promptTokens > 500, estimated]).toEqual([true, true]);
  });
});
