import OpenAI from 'openai';
import { input, PERSON, refused, run, WEATHER } from './run.mjs';

const client = (apiKey, maxRetries = 0, baseURL = input.baseUrl) => new OpenAI({ baseURL, apiKey, maxRetries });
const openai = client(input.key);
const messages = [{ role: 'user', content: input.prompt }];
const asked = { model: input.model, messages, max_tokens: 20 };
const usageOf = ({ prompt_tokens, completion_tokens }) => ({ prompt: prompt_tokens, completion: completion_tokens });

await run({
  async chat() {
    const { choices, usage, model } = await openai.chat.completions.create(asked);
    return { text: choices[0].message.content, finish: choices[0].finish_reason, usage: usageOf(usage), model };
  },
  async stream() {
    const stream = openai.chat.completions.stream({ ...asked, stream_options: { include_usage: true } });
    let text = '';
    stream.on('content', (delta) => (text += delta));
    const { choices, usage, model } = await stream.finalChatCompletion();
    return { text, finish: choices[0].finish_reason, usage: usageOf(usage), model };
  },
  async tools() {
    const tools = [{ type: 'function', function: { name: 'weather', parameters: WEATHER, strict: true } }];
    // Adds `parsed_arguments` to the call that is sent back below.
    const plain = await openai.chat.completions.parse({ ...asked, max_tokens: 200, tools });
    const streamed = await openai.chat.completions.stream({ ...asked, max_tokens: 200, tools }).finalChatCompletion();
    const [call] = plain.choices[0].message.tool_calls;
    const result = { role: 'tool', tool_call_id: call.id, content: '12 degrees' };
    const last = await openai.chat.completions.create({
      ...asked,
      tools,
      messages: [...messages, plain.choices[0].message, result],
    });
    return {
      name: call.function.name,
      arguments: JSON.parse(call.function.arguments),
      streamed: JSON.parse(streamed.choices[0].message.tool_calls[0].function.arguments),
      answer: last.choices[0].message.content,
    };
  },
  async structured() {
    const response_format = { type: 'json_schema', json_schema: { name: 'person', strict: true, schema: PERSON } };
    const { choices } = await openai.chat.completions.parse({ ...asked, max_tokens: 200, response_format });
    return choices[0].message.parsed;
  },
  async legacy() {
    const { choices, usage } = await openai.completions.create({
      model: input.model,
      prompt: input.prompt,
      max_tokens: 20,
    });
    return { text: choices[0].text, usage: usageOf(usage) };
  },
  async embeddings() {
    const { data, usage } = await openai.embeddings.create({ model: input.embeddingModel, input: ['one', 'two'] });
    return { vectors: data.map(({ embedding }) => embedding), promptTokens: usage.prompt_tokens };
  },
  async models() {
    const list = [];
    for await (const { id } of openai.models.list()) list.push(id);
    return { list, retrieved: (await openai.models.retrieve(input.model)).id };
  },
  async errors() {
    const describe = ({ status, code, param, message }) => ({ status, code, param, message });
    const create = (openai, body = {}) =>
      refused(() => openai.chat.completions.create({ ...asked, ...body }), describe);
    return {
      wrongKey: await create(client('sk-svc-wrong')),
      noCredit: await create(client(input.poorKey)),
      unknownModel: await create(openai, { model: 'none' }),
      invalid: await create(openai, { temperature: 3 }),
    };
  },
  async retries() {
    const { choices } = await client(input.singleKey, 6).chat.completions.create(asked);
    return { text: choices[0].message.content };
  },
  async repeats() {
    const broken = client(input.repeatedKey, 2, input.breakingUrl);
    const { choices } = await broken.chat.completions.create(asked, { headers: { 'idempotency-key': 'once' } });
    return { text: choices[0].message.content };
  },
  async abort() {
    const stream = await openai.chat.completions.create({ model: input.slowModel, messages, stream: true });
    let text = '';
    for await (const { choices } of stream) {
      text += choices[0].delta.content ?? '';
      if (text !== '') break;
    }
    return { text };
  },
});
