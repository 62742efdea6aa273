// The table of settings, from the settings classes of the services and the variables of `npm run stack`.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from '../setup/prepare.mjs';
import { OWN_VARIABLES, SHARED_VARIABLES } from '../stack/variables.mjs';
import { markdownTable } from './markdown-table.mjs';

const SERVICES = ['gateway', 'auth', 'metering', 'billing', 'console'];
const load = createRequire(import.meta.url);

/** A row for each setting, by name. */
export function settingsTable() {
  const settings = new Map();
  const add = (reader, { name, byDefault, ...described }) => {
    const known = settings.get(name) ?? { ...described, byDefault: new Map() };
    for (const [key, value] of Object.entries(described)) {
      if (known[key] !== value) throw new Error(`${name} is described in two ways:\n${known[key]}\n${value}`);
    }
    known.byDefault.set(reader, byDefault);
    settings.set(name, known);
  };
  for (const [reader, classes] of readers()) {
    const { describeSettings } = load(join(ROOT, 'libs/runtime/dist/index.js'));
    for (const setting of classes.flatMap(describeSettings)) add(reader, setting);
  }
  for (const [name, variable] of Object.entries(SHARED_VARIABLES)) {
    if (!settings.has(name)) throw new Error(`${name}: neither a service nor the standalone form reads it`);
    add('stack', { name, byDefault: defaultOf(variable) });
  }
  for (const [name, variable] of Object.entries(OWN_VARIABLES)) {
    const { description, form, values } = variable;
    add('stack', { name, byDefault: defaultOf(variable), description, values: form ?? `one of ${values.join(', ')}` });
  }
  const rows = [...settings].sort(([a], [b]) => (a < b ? -1 : 1));
  return markdownTable(
    ['Setting', 'Default', 'Read by', 'It must be', 'What it is for'],
    rows.map(([name, { byDefault, values, description, secret }]) => [
      `\`${name}\`${secret ? ' \\*' : ''}`,
      defaultsOf(byDefault),
      readersOf([...byDefault.keys()]),
      values,
      description,
    ]),
  );
}

/** @returns {[string, Function[]][]} each reader of settings, with its settings classes */
function readers() {
  const { SERVICE_SETTINGS } = load(join(ROOT, 'libs/runtime/dist/index.js'));
  const own = (app) => load(join(ROOT, `apps/${app}/dist/settings.js`)).SETTINGS;
  return [
    ['standalone', own('standalone')],
    ...SERVICES.map((service) => [service, [...SERVICE_SETTINGS, ...own(service)]]),
  ];
}

const defaultOf = ({ default: value, byDefault }) => byDefault ?? (value === undefined ? '–' : `\`${value}\``);

/** The most common default, and the others with the names of their readers. */
function defaultsOf(byReader) {
  const readersByDefault = Map.groupBy(byReader.keys(), (reader) => byReader.get(reader));
  const [[usual], ...others] = [...readersByDefault].sort(([, a], [, b]) => b.length - a.length);
  return [usual, ...others.map(([value, readers]) => `${readersOf(readers)}: ${value}`)].join('; ');
}

function readersOf(readers) {
  const all = SERVICES.every((service) => readers.includes(service));
  const named = all ? readers.filter((reader) => !SERVICES.includes(reader)) : readers;
  return [...(all ? ['all services'] : []), ...named].join(', ');
}
