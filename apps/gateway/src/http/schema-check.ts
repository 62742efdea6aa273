import type { ErrorObject, ValidateFunction } from 'ajv';

/** A checker of values: returns the value typed, or throws what `toError` makes of the first thing wrong. */
export function schemaCheck<T>(
  validate: ValidateFunction<T>,
  toError: (error: ErrorObject) => Error,
): (value: unknown) => T {
  return (value) => {
    if (validate(value)) return value;
    throw toError(validate.errors![0]!);
  };
}
