import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI, OpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { input, PERSON, refused, run, WEATHER } from './run.mjs';

const fields = (apiKey = input.key, maxRetries = 0) => ({
  model: input.model,
  apiKey,
  maxRetries,
  maxTokens: 20,
  configuration: { baseURL: input.baseUrl },
});
const chat = (options, ...rest) => new ChatOpenAI({ ...fields(...rest), ...options });
const usageOf = ({ input_tokens, output_tokens }) => ({ prompt: input_tokens, completion: output_tokens });
const weather = tool(() => '12 degrees', { name: 'weather', description: 'The weather of a city.', schema: WEATHER });

await run({
  async chat() {
    const { content, response_metadata: about, usage_metadata: usage } = await chat().invoke(input.prompt);
    return { text: content, finish: about.finish_reason, usage: usageOf(usage), model: about.model_name };
  },
  async stream() {
    let whole;
    for await (const chunk of await chat().stream(input.prompt))
      whole = whole === undefined ? chunk : whole.concat(chunk);
    const { content, response_metadata: about, usage_metadata: usage } = whole;
    return { text: content, finish: about.finish_reason, usage: usageOf(usage), model: about.model_name };
  },
  async tools() {
    const model = chat({ maxTokens: 200 }).bindTools([weather]);
    const question = new HumanMessage(input.prompt);
    const asking = await model.invoke([question]);
    let streamed;
    for await (const chunk of await model.stream([question])) streamed = streamed?.concat(chunk) ?? chunk;
    const [call] = asking.tool_calls;
    const result = new ToolMessage({ tool_call_id: call.id, content: await weather.invoke(call.args) });
    const last = await model.invoke([question, asking, result]);
    return { name: call.name, arguments: call.args, streamed: streamed.tool_calls[0].args, answer: last.content };
  },
  async structured() {
    const model = chat({ maxTokens: 200 }).withStructuredOutput(PERSON, { name: 'person', method: 'jsonSchema' });
    return model.invoke(input.prompt);
  },
  async legacy() {
    const { generations, llmOutput } = await new OpenAI(fields()).generate([input.prompt]);
    const { promptTokens, completionTokens } = llmOutput.tokenUsage;
    return { text: generations[0][0].text, usage: { prompt: promptTokens, completion: completionTokens } };
  },
  async embeddings() {
    const embeddings = new OpenAIEmbeddings({ ...fields(), model: input.embeddingModel });
    return { vectors: await embeddings.embedDocuments(['one', 'two']), promptTokens: null };
  },
  async errors() {
    const describe = ({ status, code, param, message }) => ({ status, code, param, message });
    const invoke = (model) => refused(() => model.invoke(input.prompt), describe);
    return {
      wrongKey: await invoke(chat({}, 'sk-svc-wrong')),
      noCredit: await invoke(chat({}, input.poorKey)),
      unknownModel: await invoke(chat({ model: 'none' })),
      invalid: await invoke(chat({ temperature: 3 })),
    };
  },
  async retries() {
    return { text: (await chat({}, input.singleKey, 6).invoke(input.prompt)).content };
  },
  async repeats() {
    const model = chat({ configuration: { baseURL: input.breakingUrl } }, input.repeatedKey, 2);
    return {
      text: (await model.invoke(input.prompt, { options: { headers: { 'idempotency-key': 'once' } } })).content,
    };
  },
  async abort() {
    const controller = new AbortController();
    const model = chat({ model: input.slowModel, maxTokens: undefined });
    let text = '';
    try {
      for await (const { content } of await model.stream(input.prompt, { signal: controller.signal })) {
        text += content;
        if (text !== '') controller.abort();
      }
    } catch (error) {
      if (!controller.signal.aborted) throw error;
    }
    return { text };
  },
});
