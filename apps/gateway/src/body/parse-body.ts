import { isUtf8 } from 'node:buffer';
import type { TSchema } from '@sinclair/typebox';
import Ajv, { type ErrorObject } from 'ajv';
import type { InferenceKind } from '@tollgate/contracts';
import { schemaCheck } from '../http/schema-check';
import { schemaMessage } from '../http/schema-message';
import { askedFor, InferenceError } from '../inference-errors';
import { ChatCompletionRequest, CompletionRequest, EmbeddingRequest } from './schemas';
import { checkStructure } from './structure';

const MAX_NAME_CHARS = 100;
/** Some editors and shells write it before a file in UTF-8. JSON does not allow it. */
const BYTE_ORDER_MARK = '\uFEFF';
const HAS_MARK = 'The body begins with a byte order mark. Send JSON without one.';

const ajv = new Ajv({ strict: true, strictTypes: false, strictRequired: false });

/** The documented fields of each kind of request. */
export const REQUEST_FIELDS: Record<InferenceKind, Readonly<Record<string, unknown>>> = {
  chat: ChatCompletionRequest.properties,
  completion: CompletionRequest.properties,
  embedding: EmbeddingRequest.properties,
};

const CHECKS: Record<InferenceKind, (body: unknown) => Record<string, unknown>> = {
  chat: compile(ChatCompletionRequest),
  completion: compile(CompletionRequest),
  embedding: compile(EmbeddingRequest),
};

/**
 * Parses a body and checks it by its schema. Throws InferenceError 400: invalid_json, or the first error with its
 * `param`.
 */
export function parseBody(kind: InferenceKind, raw: Buffer): Record<string, unknown> {
  if (raw.length === 0) throw new InferenceError('invalid_json', { message: 'The body is empty. Send a JSON object.' });
  checkStructure(raw);
  if (!isUtf8(raw)) throw new InferenceError('invalid_json', { message: 'The body is not valid UTF-8.' });
  const text = raw.toString('utf8');
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new InferenceError('invalid_json', text.startsWith(BYTE_ORDER_MARK) ? { message: HAS_MARK } : {});
  }
  try {
    return CHECKS[kind](body);
  } catch (error) {
    throw askedFor(error, body);
  }
}

/** Compiles at once: no request waits for it. */
function compile(schema: TSchema): (body: unknown) => Record<string, unknown> {
  const validate = ajv.compile<Record<string, unknown>>(schema);
  return schemaCheck(() => validate, toInferenceError);
}

/** `/messages/0/role` → `messages[0].role` */
function toParam(instancePath: string): string {
  let param = '';
  for (const escaped of instancePath.split('/').slice(1)) {
    const part = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
    if (/^\d+$/.test(part)) param += `[${part}]`;
    else param += param === '' ? part : `.${part}`;
  }
  return param;
}

/** `propertyNames` occurs only in `logit_bias`, whose members are token ids. */
function toInferenceError(error: ErrorObject): InferenceError {
  const { keyword, instancePath, params } = error;
  const at = toParam(instancePath);
  if (keyword === 'required') {
    const missing = (params as { missingProperty: string }).missingProperty;
    const param = at === '' ? missing : `${at}.${missing}`;
    return new InferenceError('missing_required_parameter', {
      message: `Missing required parameter: '${param}'.`,
      param,
    });
  }
  const param = at === '' ? null : at;
  const name = param === null ? 'The body' : `'${param}'`;
  if (keyword === 'type') {
    const types = [(params as { type: string | string[] }).type].flat().filter((type) => type !== 'null');
    return new InferenceError('invalid_type', { message: `${name} must be of type ${types.join(' or ')}.`, param });
  }
  if (keyword === 'additionalProperties') {
    const unknown = (params as { additionalProperty: string }).additionalProperty.slice(0, MAX_NAME_CHARS);
    const field = `${at}.${unknown}`;
    return new InferenceError('unsupported_parameter', { message: `'${field}' is not supported.`, param: field });
  }
  if (keyword === 'pattern' && error.propertyName !== undefined) {
    const wrong = error.propertyName.slice(0, MAX_NAME_CHARS);
    const message = `${name} must not have a member '${wrong}': only token ids are allowed.`;
    return new InferenceError('invalid_value', { message, param });
  }
  if (keyword === 'pattern') {
    const message = `${name} has characters that are not allowed, or a wrong length.`;
    return new InferenceError('invalid_value', { message, param });
  }
  if (keyword === 'enum') {
    const allowed = (params as { allowedValues: (string | number | null)[] }).allowedValues.filter(
      (value) => value !== null,
    );
    return new InferenceError('invalid_value', { message: `${name} must be one of: ${allowed.join(', ')}.`, param });
  }
  return new InferenceError('invalid_value', { message: `${name} ${schemaMessage(error)}.`, param });
}
