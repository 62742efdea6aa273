/** The name of a key or token for which none is given. */
export const DEFAULT_NAME = 'cli';

/** The named fields that are set. */
export function pick<T extends object, K extends keyof T>(
  from: T,
  ...names: K[]
): { [P in K]?: Exclude<T[P], undefined> } {
  return Object.fromEntries(names.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]]))) as never;
}
