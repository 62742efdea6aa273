import { Type } from '@sinclair/typebox';

/**
 * Building blocks of the request schemas. Unions are lists of types instead of `anyOf`, so that an error names one
 * field and one reason.
 */

/** A field that may be absent or null. Both mean the same. */
export const optional = <T>(type: string, options: Record<string, unknown>) =>
  Type.Optional(Type.Unsafe<T | null>({ type: [type, 'null'], ...options }));

/** An object with these members and no other. */
export const only = (properties: Record<string, unknown>, required: string[] = []) => ({
  type: 'object',
  required,
  additionalProperties: false,
  properties,
});
/** Members of earlier answers that clients send back. They may have any value, and no backend gets them. */
export const unsent = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, { description: 'From an earlier answer. Not passed on.' }]));
export const TEXT = { type: 'string' };
export const TEXT_OR_NULL = { type: ['string', 'null'] };
/** A name of a schema. */
export const NAME = { type: 'string', pattern: '^[a-zA-Z0-9_-]{1,64}$' };
/** A name of a function or tool. Dots are for models whose backends all take them. */
export const TOOL_NAME = {
  type: 'string',
  pattern: '^[a-zA-Z0-9_.-]{1,64}$',
  description: 'Dots only if the model takes them.',
};
