import { InferenceError } from '../inference-errors';
import { mediaUrl } from './media';
import { MEDIA_TYPES, type MediaType } from './message-schema';
import type { BodyRules } from './rules';
import type { ChatCompletionRequest, CompletionRequest } from './schemas';

/** The content parts of a type: their number, and the path of the first one. */
export interface MediaParts {
  count: number;
  param: string | null;
}
export type Media = Readonly<Record<MediaType, MediaParts>>;

export function noMedia(): Media {
  const none = (): MediaParts => ({ count: 0, param: null });
  return { image_url: none(), input_audio: none(), video_url: none(), file: none() };
}

const IN_WORDS: Readonly<Record<MediaType, string>> = {
  image_url: 'images',
  input_audio: 'audio',
  video_url: 'videos',
  file: 'files',
};
/**
 * Engines could read other text as the path of a file. Frames with commas between them are refused: a client could send
 * any number, but `maxTokensPerVideo` bounds one video.
 */
const VIDEO_DATA = /^data:video\/[a-z0-9.+-]{1,32};base64,[A-Za-z0-9+/=]*$/;

/** The most tokens of a part of each type. Null: the model accepts none. */
export function maxTokensOfMedia(
  rules: Pick<BodyRules, 'maxTokensPerImage' | 'maxTokensPerAudio' | 'maxTokensPerVideo' | 'maxTokensPerFile'>,
): Readonly<Record<MediaType, number | null>> {
  return {
    image_url: rules.maxTokensPerImage,
    input_audio: rules.maxTokensPerAudio,
    video_url: rules.maxTokensPerVideo,
    file: rules.maxTokensPerFile,
  };
}

/** Without a maximum, the cost of a part cannot be held before it runs. Throws InferenceError. */
export function refuseMedia(media: Media, model: BodyRules): void {
  const maxTokens = maxTokensOfMedia(model);
  for (const type of MEDIA_TYPES) {
    const { count, param } = media[type];
    if (count === 0 || maxTokens[type] !== null) continue;
    const message = `The model '${model.id}' does not accept ${IN_WORDS[type]}.`;
    throw new InferenceError('unsupported_parameter', { param, message });
  }
}

/** More stop sequences are refused than each backend of the model takes. Throws InferenceError. */
export function refuseStops({ stop }: ChatCompletionRequest | CompletionRequest, model: BodyRules): void {
  if (!Array.isArray(stop) || stop.length <= model.maxStopSequences) return;
  const message = `'stop' must have at most ${model.maxStopSequences} items for the model '${model.id}'.`;
  throw new InferenceError('invalid_value', { param: 'stop', message });
}

/** Refuses what the model's entry, or the dialect of a backend, says that it cannot do. Throws InferenceError. */
export function refuseUnsupported(body: ChatCompletionRequest, model: BodyRules): void {
  const { id, tools, jsonSchema, dottedNames } = model;
  const field = (['tools', 'functions'] as const).find((name) => (body[name]?.length ?? 0) > 0);
  if (!tools && field !== undefined)
    throw new InferenceError('unsupported_parameter', {
      param: field,
      message: `The model '${id}' does not support tools.`,
    });
  const type = (body.response_format as { type?: string } | null | undefined)?.type;
  if (!jsonSchema && type === 'json_schema')
    throw new InferenceError('unsupported_parameter', {
      param: 'response_format',
      message: `The model '${id}' does not support a JSON schema as response_format.`,
    });
  if (dottedNames) return;
  for (const { name, param } of namesIn(body)) {
    if (!name.includes('.')) continue;
    const message = `'${param}' must not contain a dot for the model '${id}'.`;
    throw new InferenceError('invalid_value', { param, message });
  }
}

interface Named {
  name?: string;
}
type Tool = { function?: Named; custom?: Named } | string | null | undefined;

export function hasDottedName(body: ChatCompletionRequest): boolean {
  for (const { name } of namesIn(body)) if (name.includes('.')) return true;
  return false;
}

interface NameAt {
  name: string;
  param: string;
}

/** The names of all tools and functions, with their paths. */
function namesIn({ tools, functions, tool_choice, function_call }: ChatCompletionRequest): NameAt[] {
  const names: NameAt[] = [];
  tools?.forEach((tool, i) => addNames(names, tool, `tools[${i}]`));
  (functions as { name: string }[] | null | undefined)?.forEach(({ name }, i) =>
    names.push({ name, param: `functions[${i}].name` }),
  );
  addNames(names, tool_choice, 'tool_choice');
  const called = function_call as Named | string | null | undefined;
  if (typeof called === 'object' && called?.name !== undefined)
    names.push({ name: called.name, param: 'function_call.name' });
  return names;
}

function addNames(names: NameAt[], tool: Tool, at: string): void {
  if (typeof tool !== 'object' || tool === null) return;
  for (const kind of ['function', 'custom'] as const) {
    const name = tool[kind]?.name;
    if (name !== undefined) names.push({ name, param: `${at}.${kind}.name` });
  }
}

/**
 * Replaces each address of media by the one that backends may get. Throws InferenceError.
 * @returns how many of them are not the content itself
 */
export function rewriteMediaUrls({ messages }: ChatCompletionRequest, { mediaUrls, id }: BodyRules): number {
  let remote = 0;
  const rewrite = (part: { url: string }, param: string) => {
    part.url = mediaUrl(part.url, mediaUrls, id, param);
    if (!part.url.startsWith('data:')) remote += 1;
  };
  for (const [m, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [p, { image_url: image, video_url: video }] of content.entries()) {
      const at = `messages[${m}].content[${p}]`;
      if (image) rewrite(image, `${at}.image_url.url`);
      if (!video) continue;
      const param = `${at}.video_url.url`;
      if (video.url.startsWith('data:') && !VIDEO_DATA.test(video.url)) {
        const message = `'${param}' must be a video in base64 if it is a "data:" URL.`;
        throw new InferenceError('invalid_value', { message, param });
      }
      rewrite(video, param);
    }
  }
  return remote;
}
