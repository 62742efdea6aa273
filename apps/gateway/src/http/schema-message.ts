import type { ErrorObject } from 'ajv';

/** In plain words, where Ajv's own are not: `must have at least 1 item`. Without a full stop. */
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
    default:
      return message;
  }
}
