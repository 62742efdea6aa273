import type { ErrorObject } from 'ajv';

/** The form of all ids: `idSchema` of http/account/fields.ts. */
const ID_PATTERN = /^\^([a-z]+)_\[0-7\]/;
const WITH_ARTICLE: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'a boolean',
  array: 'an array',
  object: 'an object',
};

/**
 * The message of an Ajv error without a full stop, such as `must have at least 1 item`. Uses our own words where Ajv's
 * are unclear. For a value of the wrong form, the message has the example of its schema, if Ajv is verbose.
 */
export function schemaMessage({ keyword, params, message = 'is not valid', parentSchema }: ErrorObject): string {
  const { limit } = params as { limit?: number };
  const counted = (noun: string) => `${limit} ${noun}${limit === 1 ? '' : 's'}`;
  switch (keyword) {
    case 'minItems':
      return `must have at least ${counted('item')}`;
    case 'maxItems':
      return `must have at most ${counted('item')}`;
    case 'minLength':
      return `must have at least ${counted('character')}`;
    case 'maxLength':
      return `must have at most ${counted('character')}`;
    case 'minProperties':
      return `must have at least ${counted('member')}`;
    case 'maxProperties':
      return `must have at most ${counted('member')}`;
    case 'minimum':
      return `must be at least ${limit}`;
    case 'maximum':
      return `must be at most ${limit}`;
    case 'enum':
      return `must be one of: ${(params as { allowedValues: unknown[] }).allowedValues.join(', ')}`;
    case 'pattern': {
      const [, prefix] = ID_PATTERN.exec((params as { pattern: string }).pattern) ?? [];
      if (prefix !== undefined) return `must be an id, which begins with ${prefix}_`;
      const [example] = (parentSchema as { examples?: unknown[] } | undefined)?.examples ?? [];
      return typeof example === 'string'
        ? `must have a form such as ${example}`
        : 'has characters that are not allowed, or a wrong length';
    }
    case 'type': {
      const types = [(params as { type: string | string[] }).type].flat();
      return `must be ${types.map((type) => WITH_ARTICLE[type] ?? type).join(' or ')}`;
    }
    case 'uniqueItems':
      return 'must not have the same item twice';
    case 'format':
      if ((params as { format: string }).format === 'iso8601') return 'must be a date or time such as 2026-11-01';
      return message;
    default:
      return message;
  }
}
