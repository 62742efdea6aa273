/** An invalid configuration. The message names the field by its path. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  constructor(path: string, problem: string) {
    super(path ? `${path}: ${problem}` : problem);
  }
}

/** Reads an object whose fields are all in `known`, or any object if `known` is null. */
export function readFields(value: unknown, path: string, known: readonly string[] | null): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ConfigError(path, 'must be an object');
  const unknown = known && Object.keys(value).find((name) => !known.includes(name));
  if (unknown)
    throw new ConfigError(path ? `${path}.${unknown}` : unknown, `is unknown; known are ${known.join(', ')}`);
  return value as Record<string, unknown>;
}

export function readNumber(
  value: unknown,
  path: string,
  { min, max, integer = false }: { min: number; max: number; integer?: boolean },
): number {
  if (typeof value !== 'number' || !(value >= min && value <= max) || (integer && !Number.isInteger(value))) {
    throw new ConfigError(path, `must be ${integer ? 'an integer' : 'a number'} from ${min} to ${max}`);
  }
  return value;
}

export function readString(value: unknown, path: string, maxChars = Infinity): string {
  if (typeof value !== 'string' || value === '') throw new ConfigError(path, 'must be a non-empty string');
  if (value.length > maxChars) throw new ConfigError(path, `must have at most ${maxChars} characters`);
  return value;
}

export function readBoolean(value: unknown, path: string): boolean {
  if (typeof value !== 'boolean') throw new ConfigError(path, 'must be true or false');
  return value;
}
