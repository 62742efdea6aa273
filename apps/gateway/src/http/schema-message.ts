import type { ErrorObject } from 'ajv';

/** The form of all ids: `idSchema` of http/account/fields.ts. */
const ID_PATTERN = /^\^([a-z]+)_\[0-7\]/;

/**
 * The message of an Ajv error without a full stop, such as `must have at least 1 item`. Uses our own words where Ajv's
 * are unclear.
 */
export function schemaMessage({ keyword, params, message = 'is not valid' }: ErrorObject): string {
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
      return prefix === undefined
        ? 'has characters that are not allowed, or a wrong length'
        : `must be an id, which begins with ${prefix}_`;
    }
    case 'format':
      if ((params as { format: string }).format === 'iso8601') return 'must be a date or time such as 2026-11-01';
      return message;
    default:
      return message;
  }
}
