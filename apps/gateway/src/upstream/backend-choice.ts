import type { Backend } from '../catalog/catalog';

export function urlOf({ origin, basePath }: Backend): string {
  return origin + basePath;
}

/** Removes a random backend from the list, by weight, and returns it. */
export function takeByWeight(backends: Backend[], random = Math.random()): Backend {
  const total = backends.reduce((sum, { weight }) => sum + weight, 0);
  let left = random * total;
  const index = backends.findIndex(({ weight }) => (left -= weight) < 0);
  return backends.splice(index === -1 ? backends.length - 1 : index, 1)[0]!;
}
