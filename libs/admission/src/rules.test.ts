import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(__dirname, '../../..');
/** The folders of each column of the table. */
const FOLDERS = {
  SQL: ['libs/admission/src/postgres/functions'],
  Lua: ['libs/admission/src/redis/lua'],
  model: ['libs/admission/src/suite', 'test/model'],
};
type Column = keyof typeof FOLDERS;
/** Suites describe these rules instead. The README says which. */
const WITHOUT_MODEL = [15, 30, 31, 32, 33];

interface Rule {
  number: number;
  name: string;
  files: Record<Column, string[]>;
}

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

function rulesOfTable(): Rule[] {
  const rows = read('libs/admission/README.md').matchAll(
    /^\| +(\d+) +\| ([^|]+?) +\| ([^|]+?) +\| ([^|]+?) +\| ([^|]+?) +\|$/gm,
  );
  return [...rows].map(([, number, name, ...cells]) => {
    const [SQL, Lua, model] = cells.map((cell) => [...cell.matchAll(/ in `([^`]+)`/g)].map(([, file]) => file!));
    return { number: Number(number), name: name!, files: { SQL: SQL!, Lua: Lua!, model: model! } };
  });
}

/** The rules named in these folders, as `8 clamped, or held by others: admit.sql`. */
function rulesOfFiles(folders: readonly string[]): Set<string> {
  const found = new Set<string>();
  for (const folder of folders)
    for (const file of readdirSync(join(ROOT, folder)).filter((name) => /\.(sql|lua|ts)$/.test(name)))
      for (const [, number, name] of read(join(folder, file)).matchAll(/^\s*(?:--|\/\/) rule (\d+): (.+)$/gm))
        found.add(`${number} ${name}: ${file}`);
  return found;
}

it('the table numbers the rules from 1 without gaps, and each rule is in SQL, in Lua and in the model', () => {
  const rules = rulesOfTable();
  expect(rules.map(({ number }) => number)).toEqual(rules.map((_, index) => index + 1));
  expect(rules.length).toBeGreaterThan(20);
  const without = (column: Column) =>
    rules.filter(({ files }) => files[column].length === 0).map(({ number }) => number);
  expect([without('SQL'), without('Lua'), without('model')]).toEqual([[], [], WITHOUT_MODEL]);
});

it.each(Object.keys(FOLDERS) as Column[])(
  'the rules marked in %s are those of the table, by number, name and file',
  (column) => {
    const expected = rulesOfTable().flatMap(({ number, name, files }) =>
      files[column].map((file) => `${number} ${name}: ${file}`),
    );
    expect([...rulesOfFiles(FOLDERS[column])].sort()).toEqual(expected.sort());
  },
);

it('each store builds the expired event in one place', () => {
  for (const [column, text] of [
    ['SQL', "'expired'"],
    ['Lua', '"expired"'],
  ] as const) {
    const [folder] = FOLDERS[column];
    const places = readdirSync(join(ROOT, folder!)).flatMap((file) => read(join(folder!, file)).split(text).slice(1));
    expect([column, places.length]).toEqual([column, 1]);
  }
});
