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

// The forms that a setting of the environment can have. What is wrong is one line that names the setting and what it must be; a value is never in it.

const readableFromFile = new Map<object, Set<string>>();
const described = new Map<object, Map<string, SettingText>>();

export interface SettingText {
  description: string;
  /** Says what holds where nothing is set, of a setting whose property has no default. */
  byDefault?: string | undefined;
}

/** What docs/operating/settings.md says of the setting. `npm run docs` writes its table. */
export function Setting(description: string, more: Omit<SettingText, 'description'> = {}): PropertyDecorator {
  return (target, name) => {
    const texts = described.get(target) ?? new Map<string, SettingText>();
    described.set(target, texts.set(name as string, { description, ...more }));
  };
}

/** Decorators of a setting that several classes declare, as if they stood above it in this order. */
export function combine(...decorators: readonly PropertyDecorator[]): PropertyDecorator {
  return (target, name) => {
    for (const decorate of decorators.toReversed()) decorate(target, name);
  };
}

/** Absent is fine. Above the form: `@Optional() @Text(…) NAME?: string`. */
export const Optional = IsOptional;

/** `what` completes "NAME must be …". */
export const Text = (form: RegExp, what: string) => Matches(form, { message: must(what) });

/** Nothing said of its form but that it is there and not absurdly long. */
export const Path = (what: string) => Text(/^[^\0]{1,4096}$/, what);

export function WholeNumber(min: number, max: number): PropertyDecorator {
  const message = must(`a whole number from ${min} to ${max}`);
  return (target, name) => {
    for (const apply of [Max(max, { message }), Min(min, { message }), IsInt({ message }), toNumber])
      apply(target, name as string);
  };
}

/** 0 is any free one. */
export const Port = () => WholeNumber(0, 65_535);

export function Flag(): PropertyDecorator {
  return (target, name) => {
    IsBoolean({ message: must('true or false') })(target, name as string);
    toBoolean(target, name as string);
  };
}

export const OneOf = (...values: readonly string[]) => IsIn(values, { message: must(`one of ${values.join(', ')}`) });

/** May also stand in a file that `<NAME>_FILE` names, as platforms hand out secrets. */
export function Secret(): PropertyDecorator {
  return (target, name) => {
    const names = readableFromFile.get(target) ?? new Set();
    readableFromFile.set(target, names.add(name as string));
  };
}

/** What a person made up is guessed: at least so many bits, by `entropyBits`. */
export const HardToGuess = (minBits: number) =>
  ValidateBy({
    name: 'hardToGuess',
    validator: {
      validate: (value: unknown) => typeof value === 'string' && entropyBits(value) >= minBits,
      defaultMessage: (args) => tooEasy(args!.property, minBits),
    },
  });

export const tooEasy = (name: string, minBits: number): string =>
  `${name} is too easy to guess: it needs at least ${minBits} bits of chance. Make one with: openssl rand -hex 32`;

/** What `Setting` says of the settings of a class. */
export function textsOf(type: { prototype: object }): ReadonlyMap<string, SettingText> {
  return described.get(type.prototype) ?? new Map();
}

/** The names of a settings class for which there is a `<NAME>_FILE`. */
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
