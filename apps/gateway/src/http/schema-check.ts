import type { ErrorObject, ValidateFunction } from 'ajv';

/**
 * Returns a checker of values. It returns the typed value, or throws `toError` of the first error. `compile` is called
 * once, with the first value.
 */
export function schemaCheck<T>(
  compile: () => ValidateFunction<T>,
  toError: (error: ErrorObject) => Error,
): (value: unknown) => T {
  let validate: ValidateFunction<T> | undefined;
  return (value) => {
    validate ??= compile();
    if (validate(value)) return value;
    throw toError(validate.errors![0]!);
  };
}
