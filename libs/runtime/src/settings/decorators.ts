import 'reflect-metadata';
import { Transform } from 'class-transformer';
import {
  IsBoolean,
  IsIn,
  IsInt,
  IsOptional,
  Matches,
  Max,
  Min,
  ValidateBy,
  type ValidationArguments,
} from 'class-validator';
import { entropyBits } from './entropy';

// The forms of environment settings. Each problem is one line with the name of the setting and what it must be. It
// never contains the value, because that may be a secret. Only `Satisfies` may name the wrong part of a list.

const readableFromFile = new Map<object, Set<string>>();
const described = new Map<object, Map<string, SettingText>>();

export interface SettingText {
  description: string;
  /** In Markdown: the default of a setting whose property has none. */
  byDefault?: string | undefined;
}

/** Documents a setting in the table of docs/operating/settings.md, which `npm run docs` writes. */
export function Setting(description: string, more: Omit<SettingText, 'description'> = {}): PropertyDecorator {
  return (target, name) => {
    const texts = described.get(target) ?? new Map<string, SettingText>();
    described.set(target, texts.set(name as string, { description, ...more }));
  };
}

/** Combines several decorators in this order, for settings that several classes share. */
export function combine(...decorators: readonly PropertyDecorator[]): PropertyDecorator {
  return (target, name) => {
    for (const decorate of decorators.toReversed()) decorate(target, name);
  };
}

/** The setting may be absent. Place it above the form: `@Optional() @Text(…) NAME?: string`. */
export const Optional = IsOptional;

/** `what` completes "NAME must be …". */
export const Text = (form: RegExp, what: string) => Matches(form, { message: must(what) });

/**
 * A text that a function accepts. `what` completes "NAME must be …". `wrong` says of an invalid text what is wrong with
 * it; not for secrets.
 */
export const Satisfies = (isValid: (text: string) => boolean, what: string, wrong?: (text: string) => string) =>
  ValidateBy(
    { name: 'satisfies', validator: { validate: (value: unknown) => typeof value === 'string' && isValid(value) } },
    { message: (of) => must(what)(of) + (wrong ? `; ${wrong(String(of.value))}` : '') },
  );

/** Text of a limited length. */
export const Path = (what: string) => Text(/^[^\0]{1,4096}$/, what);

export function WholeNumber(min: number, max: number): PropertyDecorator {
  const message = must(`a whole number from ${min} to ${max}`);
  return (target, name) => {
    for (const apply of [Max(max, { message }), Min(min, { message }), IsInt({ message }), toNumber])
      apply(target, name);
  };
}

/** 0 means any free port. */
export const Port = () => WholeNumber(0, 65_535);

export function Flag(): PropertyDecorator {
  return (target, name) => {
    IsBoolean({ message: must('true or false') })(target, name);
    toBoolean(target, name);
  };
}

export const OneOf = (...values: readonly string[]) => IsIn(values, { message: must(`one of ${values.join(', ')}`) });

/** The value may also be in a file that `<NAME>_FILE` names, because platforms provide secrets as files. */
export function Secret(): PropertyDecorator {
  return (target, name) => {
    const names = readableFromFile.get(target) ?? new Set();
    readableFromFile.set(target, names.add(name as string));
  };
}

/** Requires at least `minBits` by `entropyBits`: secrets that people make up can be guessed. */
export const HardToGuess = (minBits: number) =>
  ValidateBy({
    name: 'hardToGuess',
    validator: {
      validate: (value: unknown) => typeof value === 'string' && entropyBits(value) >= minBits,
      defaultMessage: (args) => tooEasy(args!.property, minBits),
    },
  });

export const tooEasy = (name: string, minBits: number): string =>
  `${name} is too easy to guess: it needs at least ${minBits} bits of entropy. Make one with: openssl rand -hex 32`;

/** The texts of `Setting` in a class, by property. */
export function textsOf(type: { prototype: object }): ReadonlyMap<string, SettingText> {
  return described.get(type.prototype) ?? new Map();
}

/** The names of a class's settings that may be in a `<NAME>_FILE`. */
export function secretsOf(type: { prototype: object }): ReadonlySet<string> {
  return readableFromFile.get(type.prototype) ?? new Set();
}

const must =
  (what: string) =>
  ({ property, value }: ValidationArguments): string =>
    value === undefined ? `${property} is not set: it must be ${what}` : `${property} must be ${what}`;

const toNumber = Transform(({ value }: { value: unknown }) =>
  typeof value === 'string' && value.trim() !== '' ? Number(value) : value,
);

const toBoolean = Transform(({ value }: { value: unknown }) =>
  value === 'true' ? true : value === 'false' ? false : value,
);
