/** How deep kafkajs wraps an error at most. */
const MAX_CAUSES = 8;

/** The brokers know this user, and do not let it do something: to try again is of no use until somebody grants it. */
export class RightMissingError extends Error {
  /** `right`: operation and resource, e.g. `WRITE on topic "charges"`. */
  constructor(right: string, cause: unknown) {
    super(`it lacks ${right}`, { cause });
    this.name = 'RightMissingError';
  }
}

/** The error itself and what caused it, outermost first; of several that came together, the first. */
function* causesOf(error: unknown): Generator<object> {
  for (let n = 0; n < MAX_CAUSES && typeof error === 'object' && error !== null; n++) {
    yield error;
    const { cause, errors } = error as { cause?: unknown; errors?: unknown };
    error = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  }
}

/** The brokers' own name of what went wrong. */
export function errorTypeOf(error: unknown): string | undefined {
  for (const { type } of causesOf(error) as Iterable<{ type?: unknown }>) if (typeof type === 'string') return type;
  return undefined;
}

const refusalOf = (error: unknown): string | undefined => {
  const type = errorTypeOf(error);
  return type?.endsWith('_AUTHORIZATION_FAILED') ? type : undefined;
};

export const isRefused = (error: unknown): boolean => refusalOf(error) !== undefined;

/** What who asked has found out to be lacking. */
export function rightMissingIn(error: unknown): RightMissingError | undefined {
  for (const cause of causesOf(error)) if (cause instanceof RightMissingError) return cause;
  return undefined;
}

/**
 * Undefined when it failed for something else. kafkajs says of a group that may not even be asked for (DESCRIBE) what
 * it says of one whose coordinator is away: only the name of that error is left, and the text names both.
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
