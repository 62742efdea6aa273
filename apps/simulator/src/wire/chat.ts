import { asciiJson } from '../generate/ascii-json';
import { readChatPrompt } from './prompt';
import { createdNow, DONE, FINGERPRINT, interleave, newReplyId, ownModelName, type Frame, type Reply } from './reply';
import { RequestError } from './request-error';
import { isObject, limitWords, readCompletionFields, type Body, type CompletionFields } from './request-fields';
import { usageJson } from './usage';
import type { FaultPlan } from '../config/fault-rules';
import type { ModelSettings } from '../config/settings';
import { composeAnswer, type Answer, type Brief } from '../generate/answer';
import { Budget } from '../generate/budget';
import { hashText, mix } from '../generate/random';
import { SchemaError } from '../generate/schema-error';

/** `POST /v1/chat/completions`. Throws `RequestError`. */
export function chatCompletion(body: Body, settings: ModelSettings, faults: FaultPlan): Reply {
  const fields = readCompletionFields(body);
  const prompt = readChatPrompt(body);
  const seed = mix(mix(hashText(fields.model), prompt.hash), typeof body['seed'] === 'number' ? body['seed'] : 0);
  const { form, place } = readForm(body, prompt.lastRole, seed);
  const brief = { answerTokens: settings.answerTokens, maxTokens: fields.maxTokens, stop: fields.stop, form };
  if (form.kind === 'words') limitWords(fields.choices, brief);
  const budget = new Budget();
  const answers = withPlace(place, () =>
    Array.from({ length: fields.choices }, (_, i) => composeAnswer(brief, mix(seed, i), budget)),
  );
  const completionTokens = answers.reduce((sum, answer) => sum + answer.completionTokens, 0);
  const promptTokens = prompt.tokens;
  const usage = usageJson({ promptTokens, completionTokens, cachedTokens: settings.cachedTokens ?? null }, faults);
  if (fields.stream) return { stream: true, promptTokens, frames: frames(fields, answers, usage) };
  const model = asciiJson(ownModelName(fields.model));
  const object = `"object":"chat.completion","created":${createdNow()},"model":${model}`;
  const head = `{"id":"${newReplyId('chatcmpl')}",${object}`;
  const choices = answers.map(plainChoice).join(',');
  const tail = `"service_tier":"default","system_fingerprint":"${FINGERPRINT}"}`;
  return {
    stream: false,
    promptTokens,
    tokens: completionTokens,
    body: `${head},"choices":[${choices}],${usage === null ? '' : `"usage":${usage},`}${tail}`,
  };
}

function plainChoice({ pieces, toolName, finishReason }: Answer, index: number): string {
  const text = JSON.stringify(pieces.join(''));
  const content = toolName === null ? `"content":${text},"refusal":null` : toolCall(toolName, text);
  const message = `{"role":"assistant",${content}}`;
  return `{"index":${index},"message":${message},"logprobs":null,"finish_reason":"${finishReason}"}`;
}

function toolCall(name: string, argumentsText: string): string {
  const called = `{"name":${asciiJson(name)},"arguments":${argumentsText}}`;
  const call = `{"id":"${newReplyId('call')}","type":"function","function":${called}}`;
  return `"content":null,"refusal":null,"tool_calls":[${call}]`;
}

/**
 * The role, a chunk for each token, and the finish reason, of all choices in turn. Then usage if requested, then the
 * end of the stream.
 */
function* frames(fields: CompletionFields, answers: Answer[], usage: string | null): Generator<Frame> {
  const model = asciiJson(ownModelName(fields.model));
  const object = `"object":"chat.completion.chunk","created":${createdNow()},"model":${model}`;
  const origin = `"service_tier":"default","system_fingerprint":"${FINGERPRINT}"`;
  const head = `data: {"id":"${newReplyId('chatcmpl')}",${object},${origin},"choices":[`;
  const close = fields.includeUsage ? '],"usage":null}\n\n' : ']}\n\n';
  yield* interleave(answers.map((answer, i) => choiceFrames(answer, i, head, close)));
  if (fields.includeUsage && usage !== null) yield { event: `${head}],"usage":${usage}}\n\n`, tokens: 0 };
  yield DONE;
}

function* choiceFrames(answer: Answer, index: number, head: string, close: string): Generator<Frame> {
  const open = `${head}{"index":${index},"delta":{`;
  const rest = `},"logprobs":null,"finish_reason":null}${close}`;
  // The tokens of a tool's name, also of a name that max_tokens cuts and that is not delivered.
  const beforePieces = answer.completionTokens - answer.pieces.length;
  if (answer.toolName === null) {
    yield { event: `${open}"role":"assistant","content":"","refusal":null${rest}`, tokens: beforePieces };
    for (const piece of answer.pieces) yield { event: `${open}"content":${JSON.stringify(piece)}${rest}`, tokens: 1 };
  } else {
    const called = `{"name":${asciiJson(answer.toolName)},"arguments":""}`;
    const call = `{"index":0,"id":"${newReplyId('call')}","type":"function","function":${called}}`;
    yield {
      event: `${open}"role":"assistant","content":null,"tool_calls":[${call}]${rest}`,
      tokens: beforePieces,
    };
    for (const piece of answer.pieces)
      yield {
        event: `${open}"tool_calls":[{"index":0,"function":{"arguments":${JSON.stringify(piece)}}}]${rest}`,
        tokens: 1,
      };
  }
  yield { event: `${open}},"logprobs":null,"finish_reason":"${answer.finishReason}"}${close}`, tokens: 0 };
}

/** An error of a schema names its place in the request. */
function withPlace<T>(place: string, compose: () => T): T {
  try {
    return compose();
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    throw new RequestError(400, `invalid schema: ${error.message}`, place, 'invalid_schema');
  }
}

interface Form {
  form: Brief['form'];
  /** The field with the schema. */
  place: string;
}

/**
 * Chooses words, JSON or a tool call. With `tool_choice: "auto"` a tool is called until the last message is a tool's
 * result, so that a client's loop ends.
 */
function readForm(body: Body, lastRole: unknown, seed: number): Form {
  const tools = readTools(body['tools']);
  const choice = body['tool_choice'] ?? (lastRole === 'tool' ? 'none' : 'auto');
  if (isObject(choice)) {
    const name = isObject(choice['function']) ? choice['function']['name'] : undefined;
    const tool = tools.find(({ form }) => form.name === name);
    if (!tool) throw new RequestError(400, 'tool_choice names no tool of the request', 'tool_choice', 'invalid_value');
    return tool;
  }
  const calls = choice === 'required' || (choice === 'auto' && lastRole !== 'tool');
  if (calls && tools.length > 0) return tools[mix(seed, tools.length) % tools.length]!;
  return { form: readFormat(body['response_format']), place: 'response_format' };
}

function readFormat(format: unknown): Brief['form'] {
  if (!isObject(format)) return { kind: 'words' };
  if (format['type'] === 'json_object') return { kind: 'object' };
  if (format['type'] !== 'json_schema') return { kind: 'words' };
  if (!isObject(format['json_schema']))
    throw new RequestError(
      400,
      'response_format.json_schema is missing',
      'response_format',
      'missing_required_parameter',
    );
  return { kind: 'schema', schema: format['json_schema']['schema'] ?? { type: 'object' } };
}

function readTools(value: unknown): (Form & { form: { kind: 'tool'; name: string } })[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new RequestError(400, 'tools must be an array', 'tools', 'invalid_type');
  return value.map((tool: unknown, i) => {
    const declared = isObject(tool) ? tool['function'] : undefined;
    if (!isObject(declared) || typeof declared['name'] !== 'string')
      throw new RequestError(400, 'every tool needs function.name', 'tools', 'invalid_value');
    return {
      form: { kind: 'tool', name: declared['name'], parameters: declared['parameters'] },
      place: `tools[${i}].function.parameters`,
    };
  });
}
