/** The maximum depth at which kafkajs wraps an error. */
const MAX_CAUSES = 8;

/** The brokers know this user, and refuse it an operation. A retry is useless until the right is granted. */
export class RightMissingError extends Error {
  /** `right`: operation and resource, e.g. `WRITE on topic "charges"`. */
  constructor(right: string, cause: unknown) {
    super(`it lacks ${right}`, { cause });
    this.name = 'RightMissingError';
  }
}

/** The error and its causes, outermost first. Of several combined errors, the first. */
export function* causesOf(error: unknown): Generator<object> {
  for (let n = 0; n < MAX_CAUSES && typeof error === 'object' && error !== null; n++) {
    yield error;
    const { cause, errors } = error as { cause?: unknown; errors?: unknown };
    error = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  }
}

/** The brokers' own name of the error. */
export function errorTypeOf(error: unknown): string | undefined {
  for (const { type } of causesOf(error) as Iterable<{ type?: unknown }>) if (typeof type === 'string') return type;
  return undefined;
}

const refusalOf = (error: unknown): string | undefined => {
  const type = errorTypeOf(error);
  return type?.endsWith('_AUTHORIZATION_FAILED') ? type : undefined;
};

export const isRefused = (error: unknown): boolean => refusalOf(error) !== undefined;

/** The missing right that an error reports. */
export function rightMissingIn(error: unknown): RightMissingError | undefined {
  for (const cause of causesOf(error)) if (cause instanceof RightMissingError) return cause;
  return undefined;
}

/**
 * The missing right, or undefined if the failure has another cause. kafkajs reports a group without DESCRIBE like one
 * whose coordinator is down. Only the name of that error is left, so the text names both.
 */
export function lackOfReading(error: unknown, topic: string, group: string): RightMissingError | undefined {
  const refusal = refusalOf(error);
  if (refusal === 'GROUP_AUTHORIZATION_FAILED') return new RightMissingError(`READ on group "${group}"`, error);
  if (refusal !== undefined) return new RightMissingError(`READ on topic "${topic}"`, error);
  for (const { name } of causesOf(error) as Iterable<{ name?: unknown }>)
    if (name === 'KafkaJSGroupCoordinatorNotFound')
      return new RightMissingError(`READ on group "${group}", or that has no coordinator`, error);
  return undefined;
}
