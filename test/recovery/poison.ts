const DEEP = 20_000;

export const json = (value: unknown) => Buffer.from(JSON.stringify(value));
export const envelope = (data: unknown, more: object = {}) => ({
  id: 'm',
  v: 1,
  at: new Date().toISOString(),
  data,
  ...more,
});
/** JSON that can be parsed but not written again. */
export const nested = (data: object) =>
  Buffer.from(JSON.stringify(envelope(data)).replace('"DEEP"', `${'{"":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`));

/** Messages that no consumer can read. They go to `<topic>.dead`. */
export function unreadable(good: object): [string, Buffer | null, RegExp][] {
  return [
    ['text', Buffer.from('hello'), /not JSON/],
    ['nothing', Buffer.alloc(0), /not JSON/],
    ['a null value', null, /not JSON/],
    ['invalid UTF-8', Buffer.from([0xff, 0xfe, 0x00, 0x80]), /not JSON/],
    ['cut off', json(envelope(good)).subarray(0, 60), /not JSON/],
    ['a list', json([envelope(good)]), /not an envelope/],
    ['a missing envelope', json(good), /not an envelope/],
    ['a future version', json(envelope(good, { v: 999 })), /version 999/],
    ['no data', json(envelope(null)), /data is not/],
    ['another type of tenant', json(envelope({ ...good, tenantId: 7 })), /no tenantId/],
    ['deep nesting', Buffer.from('['.repeat(DEEP) + ']'.repeat(DEEP)), /not an envelope/],
  ];
}
