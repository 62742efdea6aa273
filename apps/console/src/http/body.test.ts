import { Type } from '@sinclair/typebox';
import type { FastifyRequest } from 'fastify';
import { bodyOf, jsonOf, queryOf } from './body';

const readQuery = queryOf(Type.Object({ from: Type.Optional(Type.String({ format: 'date-time' })) }));
const readBody = bodyOf(Type.Object({ at: Type.Optional(Type.String({ format: 'date-time' })) }));
const sent = (text: string) =>
  ({ headers: { 'content-type': 'application/json' }, body: Buffer.from(text) }) as unknown as FastifyRequest;

it.each(['2026-11-01T00:00:00Z', '2026-11-01T00:00:00.5+05:30', '1970-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z'])(
  'the time %s of a query or a body is one that Date reads, too',
  (time) => {
    expect(readQuery({ from: time })).toEqual({ from: time });
    expect(readBody(sent(JSON.stringify({ at: time })))).toEqual({ at: time });
    expect(new Date(time).toISOString()).toMatch(/^\d{4}-/);
  },
);

it.each([
  ['has an offset without minutes', '2026-11-01T00:00:00+05'],
  ['is a leap second', '2026-12-31T23:59:60Z'],
  ['is in a year that does not exist', '0000-01-01T00:00:00Z'],
  ['is after the year 9999', '9999-12-31T23:59:59-01:00'],
  ['is on a day that does not exist', '2026-02-30T00:00:00Z'],
  ['is a date', '2026-11-01'],
])('a time that %s is malformed', (_what, time) => {
  expect(() => readQuery({ from: time })).toThrow(expect.objectContaining({ code: 'invalid_parameter' }));
  expect(() => readBody(sent(JSON.stringify({ at: time })))).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  );
});

it.each([{ reason: 'a\0b' }, { '\0': 1 }, [['\\\\\0']], '\0', 'a\ud800b', ['\udc00'], '\ude00\ud83d'])(
  'the body %j has a text that PostgreSQL does not store, and is refused',
  (body) => {
    const refused = expect.objectContaining({ code: 'invalid_request' });
    expect(() => jsonOf(Buffer.from(JSON.stringify(body)))).toThrow(refused);
  },
);

it.each([{ reason: '\\u0000' }, ['\\\\u0000'], '\u0001u0000', '0000', '\\ud800', '\ud83d\ude00 and é', '\ufffd'])(
  'the body %j is read as it is',
  (body) => {
    expect(jsonOf(Buffer.from(JSON.stringify(body)))).toEqual(body);
  },
);

it('a body full of backslashes or brackets is read, or refused as no JSON', () => {
  const body = ['\\'.repeat(30_000), `${'\\'.repeat(30_000)}u0000`];
  expect(jsonOf(Buffer.from(JSON.stringify(body)))).toEqual(body);
  const deep = Buffer.from('['.repeat(32_000) + ']'.repeat(32_000));
  expect(() => jsonOf(deep)).toThrow(expect.objectContaining({ code: 'invalid_json' }));
});
