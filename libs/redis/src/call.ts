/** One command. `keys` share a hash tag. A function is named without its library. */
export type Call =
  | { function: string; keys: readonly string[]; args: readonly (string | number)[] }
  | { command: string; keys: readonly [string]; args: readonly (string | number)[] };

/**
 * A reply of ioredis: strings, numbers, null, and arrays of these. Its place holds an Error if the call failed, and an
 * UnavailableError if Redis did not answer or cannot serve it now.
 */
export type Reply = unknown;
