// The table of the rules of the admission store: where each is in SQL, in Lua and in the model.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../setup/prepare.mjs';
import { markdownTable } from './markdown-table.mjs';

/** The columns, with their folders. */
const COLUMNS = {
  SQL: ['libs/admission/src/postgres/functions'],
  Lua: ['libs/admission/src/redis/lua'],
  model: ['libs/admission/src/suite', 'test/model'],
};
/** `-- rule 8: clamped, or held by others` */
const MARK = /^\s*(?:--|\/\/) rule (\d+): (.+)$/;
const COMMENT = /^\s*(--|\/\/|\/\*|\*)/;
/** The beginning of a function of SQL, Lua or TypeScript, of a method, or of a class. */
const BEGINS = [
  /^CREATE OR REPLACE FUNCTION (\w+)/,
  /^local function (\w+)/,
  /^(?:export )?(?:function|class) (\w+)/,
  /^ {2}(?:private |override )*(\w+)\([^)]*(?:\).*\{|)$/,
];

/** A row for each rule, in the order of their numbers. Throws if a rule has two names, or no place in SQL or Lua. */
export function rulesTable() {
  const rules = new Map();
  for (const [column, folders] of Object.entries(COLUMNS))
    for (const mark of folders.flatMap(marksOf)) {
      const rule = rules.get(mark.number) ?? { name: mark.name, SQL: new Map(), Lua: new Map(), model: new Map() };
      if (rule.name !== mark.name) throw new Error(`Rule ${mark.number} has two names: ${rule.name}, ${mark.name}`);
      const names = rule[column].get(mark.file) ?? new Set();
      rule[column].set(mark.file, names.add(mark.in));
      rules.set(mark.number, rule);
    }
  const rows = [...rules].sort(([a], [b]) => a - b);
  for (const [number, { SQL, Lua }] of rows)
    if (SQL.size === 0 || Lua.size === 0) throw new Error(`Rule ${number} is not in SQL and in Lua`);
  const places = (of) =>
    [...of].map(([file, names]) => `${[...names].map((name) => `\`${name}\``).join(', ')} in \`${file}\``).join(', ');
  return markdownTable(
    ['rule', 'name', ...Object.keys(COLUMNS)],
    rows.map(([number, { name, SQL, Lua, model }]) => [
      String(number),
      name,
      ...[SQL, Lua].map(places),
      model.size > 0 ? places(model) : '–',
    ]),
  );
}

/** The marks in the files of a folder: number and name of the rule, the file, and the function that has it. */
function marksOf(folder) {
  const files = readdirSync(join(ROOT, folder)).filter((name) => /\.(sql|lua|ts)$/.test(name));
  return files.sort().flatMap((file) => {
    const lines = readFileSync(join(ROOT, folder, file), 'utf8').split('\n');
    return lines.flatMap((line, index) => {
      const [, number, name] = MARK.exec(line) ?? [];
      if (number === undefined) return [];
      const found = beginning(lines, index);
      if (found === undefined) throw new Error(`${folder}/${file}:${index + 1}: the rule is in no function`);
      return [{ number: Number(number), name, file, in: found }];
    });
  });
}

/** The function that begins below the comment of the mark, or else the last one that began above it. */
function beginning(lines, index) {
  const next = lines.slice(index).find((line) => !COMMENT.test(line));
  return beginsAt(next ?? '') ?? lines.slice(0, index).map(beginsAt).findLast(Boolean);
}

function beginsAt(line) {
  if (/^ {2}(?:if|for|while|switch|constructor)\b/.test(line)) return undefined;
  return BEGINS.map((form) => form.exec(line)?.[1]).find(Boolean);
}
