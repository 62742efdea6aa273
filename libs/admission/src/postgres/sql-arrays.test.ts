import { useTestDatabase } from '@tollgate/testing';
import { jsonTexts, numbers, texts } from './sql-arrays';

const database = useTestDatabase();
const ALL_CHARACTERS = Array.from({ length: 0x2100 }, (_, code) => String.fromCharCode(code + 1)).join('');
const HARD = ['', 'NULL', 'a,b', '{}', ' "quoted" ', '\\', '\\"', '"\\', '\n\t\r', '😀 é', ALL_CHARACTERS];

it('an array keeps every text as it is', async () => {
  const [row] = await database.query<{ back: string[] }>('SELECT $1::text[] AS back', [texts(HARD, (text) => text)]);
  expect(row!.back).toEqual(HARD);
});

it('an array keeps every value of JSON, and null as NULL', async () => {
  const values = [...HARD.map((text) => ({ text, [text]: [1, null, true] })), { half: '\ud800' }, null];
  const [row] = await database.query<{ back: (string | null)[] }>('SELECT $1::text[] AS back', [
    jsonTexts(values, (value) => value),
  ]);
  expect(row!.back.map((text) => text && (JSON.parse(text) as unknown))).toEqual(values);
});

it('an array keeps numbers, booleans and null', async () => {
  const [row] = await database.query<{ n: string[]; b: boolean[] }>('SELECT $1::bigint[] AS n, $2::boolean[] AS b', [
    numbers([1, -2, 9_223_372_036_854_775_807n, null], (value) => value),
    numbers([true, false, null], (value) => value),
  ]);
  expect(row).toEqual({ n: ['1', '-2', '9223372036854775807', null], b: [true, false, null] });
});

it('no values make an empty array', () => {
  expect([numbers([], () => 1), texts([], () => ''), jsonTexts([], () => ({}))]).toEqual(['{}', '{}', '{}']);
});
