/**
 * Whether the member `error` of a chunk or a plain answer with status 2xx reports an error. Some engines write the
 * member always. They say that there is no error by null, false, 0, an empty text or list, or an object in which each
 * member says so. An object without members is an error: JavaScript writes its errors as `{}`.
 */
export function saysError(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return Boolean(error);
  const members: unknown[] = Object.values(error);
  return members.length === 0 ? !Array.isArray(error) : members.some(saysSomething);
}

function saysSomething(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}
