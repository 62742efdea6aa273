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
    const [SQL, Lua, model] = cells.map((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, file]) => file!));
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

it('the table numbers the rules from 1 without gaps, and each rule is in SQL and in Lua', () => {
  const rules = rulesOfTable();
  expect(rules.map(({ number }) => number)).toEqual(rules.map((_, index) => index + 1));
  expect(rules.length).toBeGreaterThan(20);
  for (const { files } of rules) for (const column of ['SQL', 'Lua'] as const) expect(files[column]).not.toEqual([]);
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
