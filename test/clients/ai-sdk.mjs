import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embedMany, generateText, isStepCount, jsonSchema, Output, streamText, tool } from 'ai';
import { input, PERSON, refused, run, WEATHER } from './run.mjs';

const provider = (apiKey, baseURL = input.baseUrl) =>
  createOpenAICompatible({
    name: 'tollgate',
    baseURL,
    apiKey,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
const tollgate = provider(input.key);
const asked = { model: tollgate(input.model), prompt: input.prompt, maxOutputTokens: 20, maxRetries: 0 };
const usageOf = ({ inputTokens, outputTokens }) => ({ prompt: inputTokens, completion: outputTokens });
const weather = (calls) =>
  tool({
    inputSchema: jsonSchema(WEATHER),
    execute: (given) => {
      calls.push(given);
      return '12 degrees';
    },
  });

await run({
  async chat() {
    const { text, finishReason, usage, response } = await generateText(asked);
    return { text, finish: finishReason, usage: usageOf(usage), model: response.modelId };
  },
  async stream() {
    const { textStream, finishReason, usage, response } = streamText(asked);
    let text = '';
    for await (const delta of textStream) text += delta;
    return { text, finish: await finishReason, usage: usageOf(await usage), model: (await response).modelId };
  },
  async tools() {
    const calls = [];
    const options = { ...asked, maxOutputTokens: 200, tools: { weather: weather(calls) }, stopWhen: isStepCount(2) };
    const { text, steps } = await generateText(options);
    await streamText(options).text;
    return { name: steps[0].toolCalls[0].toolName, arguments: calls[0], streamed: calls[1], answer: text };
  },
  async structured() {
    const output = Output.object({ schema: jsonSchema(PERSON), name: 'person' });
    return (await generateText({ ...asked, maxOutputTokens: 200, output })).output;
  },
  async legacy() {
    const { text, usage } = await generateText({ ...asked, model: tollgate.completionModel(input.model) });
    return { text, usage: usageOf(usage) };
  },
  async embeddings() {
    const model = tollgate.embeddingModel(input.embeddingModel);
    const { embeddings, usage } = await embedMany({ model, values: ['one', 'two'], maxRetries: 0 });
    return { vectors: embeddings, promptTokens: usage.tokens };
  },
  async errors() {
    const describe = ({ statusCode, message, responseBody }) => {
      const { code, param } = JSON.parse(responseBody).error;
      return { status: statusCode, code, param, message };
    };
    const generate = (options) => refused(() => generateText({ ...asked, ...options }), describe);
    return {
      wrongKey: await generate({ model: provider('sk-svc-wrong')(input.model) }),
      noCredit: await generate({ model: provider(input.poorKey)(input.model) }),
      unknownModel: await generate({ model: tollgate('none') }),
      invalid: await generate({ temperature: 3 }),
    };
  },
  async retries() {
    const { text } = await generateText({ ...asked, model: provider(input.singleKey)(input.model), maxRetries: 6 });
    return { text };
  },
  async repeats() {
    const model = provider(input.repeatedKey, input.breakingUrl)(input.model);
    const { text } = await generateText({ ...asked, model, maxRetries: 2, headers: { 'idempotency-key': 'once' } });
    return { text };
  },
  async abort() {
    const controller = new AbortController();
    const { textStream } = streamText({
      model: tollgate(input.slowModel),
      prompt: input.prompt,
      maxRetries: 0,
      abortSignal: controller.signal,
    });
    let text = '';
    for await (const delta of textStream) {
      text += delta;
      if (text !== '') controller.abort();
    }
    return { text };
  },
});
