import Ajv from 'ajv';
import { schemaMessage } from './schema-message';

describe('the message for an invalid value', () => {
  it.each([
    [{ type: 'array', minItems: 1 }, [], 'must have at least 1 item'],
    [{ type: 'array', maxItems: 2 }, [1, 2, 3], 'must have at most 2 items'],
    [{ type: 'string', minLength: 3 }, 'ab', 'must have at least 3 characters'],
    [{ type: 'string', maxLength: 1 }, 'ab', 'must have at most 1 character'],
    [{ type: 'object', minProperties: 1 }, {}, 'must have at least 1 member'],
    [{ type: 'object', maxProperties: 0 }, { a: 1 }, 'must have at most 0 members'],
    [{ type: 'number', minimum: 0 }, -1, 'must be at least 0'],
    [{ type: 'number', maximum: 2 }, 3, 'must be at most 2'],
    [{ enum: ['a', 'b'] }, 'c', 'must be one of: a, b'],
    [{ type: 'array', uniqueItems: true }, [1, 1], 'must not have the same item twice'],
    [{ type: 'integer' }, 'a', 'must be an integer'],
    [{ type: ['string', 'null'] }, 5, 'must be a string or null'],
    [{ type: 'string', pattern: '^a' }, 'b', 'has characters that are not allowed, or a wrong length'],
    [{ type: 'string', pattern: '^\\d{4}-', examples: ['2026-10'] }, 'b', 'must have a form such as 2026-10'],
    [{ type: 'string', format: 'iso8601' }, 'now', 'must be a date or time such as 2026-11-01'],
  ])('%j', (schema, value, message) => {
    const validate = new Ajv({ verbose: true, allowUnionTypes: true, formats: { iso8601: /^\d{4}/ } }).compile(schema);
    expect(validate(value)).toBe(false);
    expect(schemaMessage(validate.errors![0]!)).toBe(message);
  });
});
