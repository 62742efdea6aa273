import type { Usage } from '../../../src/api/answers';

/** The points as rows of a file. A key has its id, because several keys may share a name. */
export function usageRows(
  points: Usage['points'],
  by: 'model' | 'key' | undefined,
  nameOf: (name: string | null) => string,
): object[] {
  return points.map(({ at, name, ...sums }) => ({
    at,
    ...(by === 'key' && { keyId: name ?? '' }),
    name: nameOf(name),
    ...sums,
  }));
}
