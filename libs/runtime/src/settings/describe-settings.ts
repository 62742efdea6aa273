import { getMetadataStorage } from 'class-validator';
import { secretsOf, textsOf } from './decorators';
import { namesOf, type SettingsClass } from './read-settings';

/** A row of the table in docs/operating/settings.md. */
export interface DescribedSetting {
  name: string;
  description: string;
  /** Completes "it must be …". */
  values: string;
  /** In Markdown. */
  byDefault: string;
  /** May also be in a file that `<NAME>_FILE` names. */
  secret: boolean;
}

/** The settings of a class, as its decorators declare them. Throws for a setting without a description. */
export function describeSettings(type: SettingsClass): DescribedSetting[] {
  const defaults = new type() as Record<string, unknown>;
  return [...namesOf(type)].map((name) => {
    const text = textsOf(type).get(name);
    if (text === undefined) throw new Error(`${type.name}.${name} has no description: add @Setting('…') to it`);
    const { values, optional } = rulesOf(type, name);
    const { description, byDefault = defaultOf(defaults[name], optional) } = text;
    return { name, description, values, byDefault, secret: secretsOf(type).has(name) };
  });
}

function defaultOf(value: unknown, optional: boolean): string {
  if (value === undefined) return optional ? '–' : 'required';
  // eslint-disable-next-line @typescript-eslint/no-base-to-string -- a default is text or a number
  return value === '' ? '–' : `\`${String(value)}\``;
}

/** What a setting must be, taken from the messages of its decorators. */
function rulesOf(type: SettingsClass, name: string): { values: string; optional: boolean } {
  const rules = getMetadataStorage()
    .getTargetValidationMetadatas(type, '', false, false)
    .filter(({ propertyName }) => propertyName === name);
  const begin = `${name} must be `;
  const messages = rules.map(({ message }) =>
    typeof message === 'function'
      ? message({ property: name, value: '', targetName: '', object: {}, constraints: [] })
      : '',
  );
  const values = messages.find((message) => message.startsWith(begin))?.slice(begin.length);
  if (values === undefined) throw new Error(`${type.name}.${name} does not say what it must be`);
  return { values, optional: rules.some(({ name: rule }) => rule === 'isOptional') };
}
