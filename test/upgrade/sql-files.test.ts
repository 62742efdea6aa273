import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { MIGRATIONS as ADMISSION } from '../../libs/admission/src';
import { MIGRATIONS as CREDENTIALS } from '../../libs/credentials/src';
import { MIGRATIONS as AUTH } from '../../apps/auth/src/database';
import { MIGRATIONS as BILLING } from '../../apps/billing/src/database';
import { MIGRATIONS as METERING } from '../../apps/metering/src/database';

const SCHEMAS = [AUTH, METERING, BILLING, ADMISSION, CREDENTIALS];

const sqlOf = (directory: string): [file: string, sql: string][] =>
  readdirSync(directory)
    .filter((name) => name.endsWith('.sql'))
    .map((name) => [name, readFileSync(join(directory, name), 'utf8').replaceAll(/--.*$/gm, '')]);

it.each(SCHEMAS)('the numbered files of $schema contain no function, view or trigger', ({ directory }) => {
  for (const [file, sql] of sqlOf(directory))
    expect([file, /CREATE [A-Z ]*(FUNCTION|PROCEDURE|VIEW|TRIGGER) \w+/.exec(sql)?.[0]]).toEqual([file, undefined]);
});

it.each(SCHEMAS)('each function, view and trigger of $schema is defined exactly once', ({ functions }) => {
  const defined: string[] = [];
  for (const [file, sql] of sqlOf(functions)) {
    for (const [, what, name, on] of sql.matchAll(
      /^CREATE (?:OR REPLACE )?(?:CONSTRAINT )?(FUNCTION|VIEW|TRIGGER) (\w+)(?:[^;]*? ON (\w+))?/gm,
    ))
      defined.push(`${what} ${name}${what === 'TRIGGER' ? ` ON ${on}` : ''}`);
    // Triggers are dropped and created again. Everything else is replaced.
    if (file !== 'triggers.sql') expect([file, /^CREATE (?!OR REPLACE)/m.test(sql)]).toEqual([file, false]);
  }
  expect(defined.length).toBeGreaterThan(0);
  expect(defined.filter((one, i) => defined.indexOf(one) !== i)).toEqual([]);
});

it('the tests use the schemas of the services', () => {
  const root = resolve(__dirname, '../..');
  const listed = readFileSync(join(root, 'test/setup/migrations.mjs'), 'utf8').match(/(?<=below\()'.*(?=\))/g);
  const ours = SCHEMAS.map(({ schema, directory }) => `'${schema}', '${relative(root, dirname(directory))}'`);
  expect(listed).toEqual(ours);
  for (const { directory, functions } of SCHEMAS) expect(functions).toBe(join(dirname(directory), 'functions'));
});
