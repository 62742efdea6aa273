import {
  DOCUMENTED_FIELDS,
  fieldTakenFor,
  foldFieldName,
  MAX_FIELD_NAME_CHARS,
  NEVER_PASSED_ON,
  NEVER_RENDERED,
  WITHOUT_EFFECT,
} from '@tollgate/contracts';
import { InferenceError } from '../inference-errors';
import { refuseRemoteReferences } from './schema-references';
import { toJson } from './to-json';

/** OpenAI's limits. Metadata is not part of the prompt, so it is not charged. */
const MAX_METADATA = 16;
const MAX_METADATA_CHARS = 512;
const MAX_TEMPLATE_ARGUMENTS = 16;
/** What other APIs call `max_tokens`. */
const OTHER_NAMES_OF_MAX_TOKENS: ReadonlySet<string> = new Set([
  'max_length',
  'max_new_tokens',
  'max_output_tokens',
  'max_tokens_to_sample',
  'n_predict',
  'new_tokens',
  'num_predict',
]);
const FIELD_NAME = /^[a-z][a-z0-9_]*$/;
const MAX_TEMPLATE_ARGUMENT_CHARS = 64;
/** Template arguments that carry the prompt itself. */
const PROMPT_ARGUMENTS = new Set(
  ['messages', 'conversation', 'tools', 'tokenize', 'tokenizer', 'bos_token', 'eos_token', 'date_string'].map(
    foldFieldName,
  ),
);
/**
 * The switch of some templates (DeepSeek-V3.1, Granite), as `enable_thinking` of others. As a field of the body itself
 * it has a budget of tokens, and never goes on.
 */
const THINKING_SWITCH = 'thinking';

/** An undocumented field that the model passes on, with its JSON. */
export interface ExtraField {
  name: string;
  json: string;
  /** The value may be rendered into the prompt: it is or contains text. */
  rendered: boolean;
}

/**
 * The undocumented fields that the model passes on (`passthrough`). A null value counts as absent. Throws
 * InferenceError unsupported_parameter for any other undocumented field.
 * @param documented the fields of the schema
 */
export function extraFields(
  body: Record<string, unknown>,
  documented: Readonly<Record<string, unknown>>,
  { id, passthrough }: { id: string; passthrough: ReadonlySet<string> },
): ExtraField[] {
  const extras: ExtraField[] = [];
  for (const name of Object.keys(body)) {
    const value = body[name];
    if (Object.hasOwn(documented, name) || value === null) continue;
    if (WITHOUT_EFFECT.get(name)?.includes(JSON.stringify(value))) continue;
    const reason = validateExtraField(name, id, passthrough);
    if (reason !== null) {
      const hint = OTHER_NAMES_OF_MAX_TOKENS.has(name) && Object.hasOwn(documented, 'max_tokens');
      const message = hint ? `${reason} Use max_tokens.` : reason;
      throw new InferenceError('unsupported_parameter', { message, param: shownName(name) });
    }
    if (name === 'chat_template_kwargs') checkTemplateArguments(value);
    else if (name === 'metadata') checkMetadata(value);
    else refuseRemoteReferences(value, name);
    const rendered = (typeof value === 'string' || typeof value === 'object') && !NEVER_RENDERED.has(name);
    extras.push({ name, json: toJson(value), rendered });
  }
  return extras;
}

function shownName(name: string): string {
  return name.slice(0, MAX_FIELD_NAME_CHARS);
}

/** `name` has at most MAX_FIELD_NAME_CHARS. */
function reasonNeverPassedOn(name: string): string | null {
  const reason = NEVER_PASSED_ON.get(name);
  if (reason !== undefined) return `'${name}' is not supported: ${reason}.`;
  const taken = fieldTakenFor(name);
  return taken === undefined ? null : `'${name}' is not supported. Did you mean '${taken}'?`;
}

function validateExtraField(name: string, modelId: string, passthrough: ReadonlySet<string>): string | null {
  if (passthrough.has(name)) return null;
  // First, as a long name is slow to fold.
  if (name.length > MAX_FIELD_NAME_CHARS)
    return `'${shownName(name)}…' is not supported: it is longer than ${MAX_FIELD_NAME_CHARS} characters.`;
  // No passthrough list may name such a field.
  if (!FIELD_NAME.test(name) || DOCUMENTED_FIELDS.has(name))
    return reasonNeverPassedOn(name) ?? `'${name}' is not a field of this request.`;
  return (
    reasonNeverPassedOn(name) ??
    `'${name}' is not supported by the model '${modelId}'. ` +
      'The operator of the service can allow it in the "passthrough" list of the model in tollgate.yaml.'
  );
}

/** Metadata is the client's own notes: a few short texts. */
function checkMetadata(value: unknown): void {
  const param = 'metadata';
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new InferenceError('invalid_type', { message: `'${param}' must be of type object.`, param });
  const members = Object.entries(value);
  const isShort = ([name, text]: [string, unknown]) =>
    name.length <= MAX_METADATA_CHARS && typeof text === 'string' && text.length <= MAX_METADATA_CHARS;
  if (members.length <= MAX_METADATA && members.every(isShort)) return;
  const message =
    `'${param}' must have at most ${MAX_METADATA} members, ` + `each a text of up to ${MAX_METADATA_CHARS} characters.`;
  throw new InferenceError('invalid_value', { message, param });
}

/** The argument carries the prompt, or some parser takes it for a field that never goes on. */
function isKnownArgument(name: string): boolean {
  return PROMPT_ARGUMENTS.has(foldFieldName(name)) || NEVER_PASSED_ON.has(name) || fieldTakenFor(name) !== undefined;
}

/**
 * Accepts switches of a template, such as `enable_thinking`. Refuses what could be a template or a prompt, and long
 * texts.
 */
function checkTemplateArguments(value: unknown): void {
  const param = 'chat_template_kwargs';
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new InferenceError('invalid_type', { message: `'${param}' must be of type object.`, param });
  const members = Object.entries(value);
  if (members.length > MAX_TEMPLATE_ARGUMENTS) {
    const message = `'${param}' must have at most ${MAX_TEMPLATE_ARGUMENTS} members.`;
    throw new InferenceError('invalid_value', { message, param });
  }
  for (const [name, argument] of members) {
    const at = `${param}.${shownName(name)}`;
    if (name === THINKING_SWITCH) {
      if (typeof argument === 'boolean' || argument === null) continue;
      throw new InferenceError('invalid_value', { message: `'${at}' must be true or false.`, param: at });
    }
    if (name.length > MAX_FIELD_NAME_CHARS || !FIELD_NAME.test(name) || isKnownArgument(name))
      throw new InferenceError('unsupported_parameter', { message: `'${at}' is not supported.`, param: at });
    const isSwitch = typeof argument === 'boolean' || typeof argument === 'number' || argument === null;
    if (isSwitch || (typeof argument === 'string' && argument.length <= MAX_TEMPLATE_ARGUMENT_CHARS)) continue;
    const message =
      `'${at}' must be true, false, a number, ` + `or a text of up to ${MAX_TEMPLATE_ARGUMENT_CHARS} characters.`;
    throw new InferenceError('invalid_value', { message, param: at });
  }
}
