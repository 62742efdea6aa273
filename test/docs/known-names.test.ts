import { OTHER_FAMILIES, OTHER_NAMES, SETTING_FAMILIES, SETTING_NAMES } from '@tollgate/runtime';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(__dirname, '../..');
/** Where tools, compose files, charts and tests name variables. */
const FOLDERS = ['tools', 'deploy', 'test'];
/** Names that end where a text goes on, names of variables that a test makes up, and names of C. */
const NO_VARIABLES = new Set(['TOLLGATE_OPERATOR_S', 'TOLLGATE_PROT', 'TOLLGATE_BACKEND_KEY']);
const SKIPPED = new Set(['node_modules', 'dist', '.git']);

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

it('the settings that each process knows are those of the table', () => {
  const inTable = [...read('docs/operating/settings.md').matchAll(/^\| `(TOLLGATE_[A-Z_<>]+)`/gm)].map(
    ([, name]) => name,
  );
  expect([...SETTING_NAMES, ...SETTING_FAMILIES.keys()].sort()).toEqual(inTable.sort());
});

it('each process knows the variables that tools, compose files, charts and tests name', () => {
  const files = [
    ...readdirSync(ROOT).filter((name) => name.startsWith('docker-compose')),
    ...FOLDERS.flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && /\.(mjs|ts|sh|ya?ml|tpl|env|cfg)$/.test(entry.name))
        .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
        .filter((path) => !path.split('/').some((part) => SKIPPED.has(part))),
    ),
  ];
  const families = [...SETTING_FAMILIES.values(), ...OTHER_FAMILIES];
  const unknown = files.flatMap((file) =>
    [...read(file).matchAll(/\bTOLLGATE_[A-Z0-9_]*[A-Z0-9]\b/g)]
      .map(([name]) => name)
      .filter((name) => {
        const plain = name.replace(/_FILE$/, '');
        const known = [name, plain].some((one) => SETTING_NAMES.includes(one) || OTHER_NAMES.includes(one));
        return !known && !families.some((family) => family.test(name)) && !NO_VARIABLES.has(name);
      })
      .map((name) => `${file}: ${name}`),
  );
  expect(unknown).toEqual([]);
});
