import type { BackendDialect, InferenceKind } from '@tollgate/contracts';
import type { Backend } from '../catalog/catalog';
import type { ExtraField } from './extra-fields';
import { argumentTokens, escapeTokens, htmlTokens, INDENTED_FIELDS, jointTokens, layoutBytes } from './layout';
import type { ChatCompletionRequest } from './schemas';
import { REQUEST_FIELDS } from './parse-body';
import { toJson } from './to-json';

/** Fields that are not copied from the body: the gateway sets them for each backend, or handles them itself. */
const OURS = new Set(['model', 'max_tokens', 'max_completion_tokens', 'stream_options', 'best_of', 'echo']);

/**
 * The fields that carry the output limit of a chat. Most dialects may read either of two names, so both are sent.
 * OpenAI refuses both at once. llama.cpp prefers its own `n_predict`. Legacy completions have only `max_tokens`, and
 * `n_predict` for llama.cpp.
 */
const CAP_NAMES: Record<BackendDialect, readonly string[]> = {
  any: ['max_tokens', 'max_completion_tokens'],
  openai: ['max_completion_tokens'],
  vllm: ['max_tokens', 'max_completion_tokens'],
  llamacpp: ['n_predict', 'max_tokens', 'max_completion_tokens'],
  ollama: ['max_tokens', 'max_completion_tokens'],
  sglang: ['max_tokens', 'max_completion_tokens'],
  tgi: ['max_tokens', 'max_completion_tokens'],
  simulator: ['max_tokens', 'max_completion_tokens'],
};

/** A validated body, serialised again: each member once, in a fixed order, and only validated fields. */
export interface Outgoing {
  /** The documented fields for the backend as JSON members in UTF-8: without braces, with a comma after each. */
  fields: Buffer;
  /** Undocumented fields, for the backends whose dialect knows them. */
  extras: readonly ExtraField[];
  /** The bytes of all fields in UTF-8, without media. No prompt made of these fields as they are has more tokens. */
  bytes: number;
  /** The prompt has more than texts and lists of tokens: tools, a schema, calls or a suffix. */
  structured: boolean;
  /** The bytes that the prompt may have beyond `bytes`: templates may write out numbers with an exponent. */
  growthBytes: number;
  /** The bytes of tools, and of other JSON that templates may indent, after they are indented. 0: there is none. */
  indentedBytes: number;
  /** The part of `indentedBytes` that is newlines and blanks, and not part of `bytes`. */
  layoutBytes: number;
  /** The tokens that templates may add to tools, earlier calls and their results, by blanks, tags and escapes. */
  rewrittenTokens: number;
  /** The tokens that templates may add between the parts of messages. Not more than `bytes` has for their syntax. */
  jointTokens: number;
}

const EXPONENT = /[0-9][eE][+-]?[0-9]/g;
/** `1e20` is written out as 21 digits. */
const MOST_GROWTH_BYTES = 17;

export function toOutgoing(kind: InferenceKind, body: Record<string, unknown>, extras: ExtraField[]): Outgoing {
  const structured = isStructured(kind, body, extras);
  let fields = '';
  let [indentedBytes, allLayoutBytes] = [0, 0];
  const messages = kind === 'chat' ? (body['messages'] as Messages) : [];
  let rewrittenTokens = tokensOfCalls(messages);
  const joints = messages.reduce((tokens, { content }) => tokens + jointTokens(textsOf(content)), 0);
  const mayBeIndented = (value: unknown, json: string) => {
    if (typeof value !== 'object') return;
    const layout = layoutBytes(value);
    indentedBytes += Buffer.byteLength(json) + layout;
    allLayoutBytes += layout;
    rewrittenTokens += htmlTokens(json);
  };
  for (const name of Object.keys(REQUEST_FIELDS[kind])) {
    const value = body[name];
    if (value === undefined || value === null || OURS.has(name)) continue;
    const json = toJson(value);
    fields += `"${name}":${json},`;
    if (structured && INDENTED_FIELDS.has(name)) mayBeIndented(value, json);
  }
  const written = Buffer.from(fields);
  let bytes = written.length - mediaBytes(body);
  let numbers = structured ? exponentsIn(fields) : 0;
  for (const { name, json, rendered } of extras) {
    bytes += name.length + Buffer.byteLength(json);
    if (structured) numbers += exponentsIn(json);
    if (rendered) mayBeIndented(body[name], json);
  }
  const growthBytes = MOST_GROWTH_BYTES * numbers;
  const layout = { growthBytes, indentedBytes, layoutBytes: allLayoutBytes, rewrittenTokens, jointTokens: joints };
  return { fields: written, extras, bytes, structured, ...layout };
}

function tokensOfCalls(messages: Messages): number {
  let tokens = 0;
  for (const { role, content, tool_calls, function_call } of messages) {
    for (const call of (tool_calls ?? []) as Called[]) tokens += argumentTokens(call.function?.arguments ?? '');
    tokens += argumentTokens((function_call as Called['function'])?.arguments ?? '');
    if (role !== 'tool' && role !== 'function') continue;
    if (typeof content === 'string') tokens += escapeTokens(content);
    // The newlines that may join parts are escaped too.
    else tokens += escapeTokens(textsOf(content).join('\n'));
  }
  return tokens;
}

/** The texts of the parts of a content, as far as they have one. Empty for a content that is one text. */
function textsOf(content: Messages[number]['content']): string[] {
  if (!Array.isArray(content)) return [];
  return content.map(({ text, refusal, file }) => text ?? refusal ?? file?.filename ?? '');
}

interface Called {
  function?: { arguments?: string } | null;
}

function exponentsIn(json: string): number {
  return json.match(EXPONENT)?.length ?? 0;
}

/**
 * The body for a backend: the validated fields, the backend's name for the model, the output limit of the hold, and the
 * request for usage.
 */
export function upstreamBody(
  { kind, stream, outgoing }: { kind: InferenceKind; stream: boolean; outgoing: Outgoing },
  { model, dialect, passthrough }: Pick<Backend, 'model' | 'dialect' | 'passthrough'>,
  maxTokensPerChoice: number,
): Buffer {
  let head = '{';
  if (kind !== 'embedding') for (const name of capNames(kind, dialect)) head += `"${name}":${maxTokensPerChoice},`;
  if (stream) head += '"stream_options":{"include_usage":true},';
  let tail = '';
  for (const extra of outgoing.extras) if (passthrough.has(extra.name)) tail += `"${extra.name}":${extra.json},`;
  // Last, because no comma may follow it.
  tail += `"model":${JSON.stringify(model)}}`;
  return Buffer.concat([Buffer.from(head), outgoing.fields, Buffer.from(tail)]);
}

function capNames(kind: InferenceKind, dialect: BackendDialect): readonly string[] {
  if (kind === 'chat') return CAP_NAMES[dialect];
  return dialect === 'llamacpp' ? ['n_predict', 'max_tokens'] : ['max_tokens'];
}

type Messages = ChatCompletionRequest['messages'];

/**
 * The bytes of media in JSON. Their cost does not depend on their bytes: the model's maximum is used instead. The name
 * of a file is text.
 */
function mediaBytes(body: Record<string, unknown>): number {
  let bytes = 0;
  for (const { content } of (body['messages'] ?? []) as Messages) {
    if (!Array.isArray(content)) continue;
    for (const { image_url, input_audio, video_url, file } of content) {
      const media = image_url ?? input_audio ?? video_url ?? file?.file_data;
      if (media) bytes += Buffer.byteLength(JSON.stringify(media));
    }
  }
  return bytes;
}

/** Fields other than messages and prompts that backends render into the prompt. */
export const ALSO_IN_PROMPT = ['tools', 'functions', 'tool_choice', 'function_call', 'response_format', 'suffix'];

/**
 * Whether every engine renders the field. Most make a grammar of a schema and render none of it, many ignore the older
 * form of tools, and SGLang and TGI leave out the tools that `tool_choice` rules out.
 */
export function isRenderedByAll(field: string, body: Record<string, unknown>): boolean {
  const choice = body['tool_choice'];
  const leavesOutTools = choice === 'none' || (typeof choice === 'object' && choice !== null);
  return field === 'suffix' || (field === 'tools' && !leavesOutTools);
}

function isStructured(kind: InferenceKind, body: Record<string, unknown>, extras: readonly ExtraField[]): boolean {
  if (extras.some(({ rendered }) => rendered) || ALSO_IN_PROMPT.some((field) => body[field] != null)) return true;
  return kind === 'chat' && (body['messages'] as Messages).some(hasStructure);
}

function hasStructure(message: Messages[number]): boolean {
  for (const field in message) {
    const value: unknown = message[field as keyof typeof message];
    if (typeof value === 'string' || value === null) continue;
    if (field !== 'content' || !Array.isArray(value)) return true;
    if (value.some((part: { type: string }) => part.type !== 'text')) return true;
  }
  return false;
}
