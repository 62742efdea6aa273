import type { ErrorObject, ValidateFunction } from 'ajv';

/** Returns a checker of values. It returns the typed value, or throws `toError` of the first error. */
export function schemaCheck<T>(
  validate: ValidateFunction<T>,
  toError: (error: ErrorObject) => Error,
): (value: unknown) => T {
  return (value) => {
    if (validate(value)) return value;
    throw toError(validate.errors![0]!);
  };
}
