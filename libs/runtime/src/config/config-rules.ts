import 'reflect-metadata';
import { Transform, Type } from 'class-transformer';
import { IsOptional, ValidateBy, ValidateNested } from 'class-validator';
import type { Path } from './config-secrets';

// The rules of the fields of tollgate.yaml. Each problem says "must be …", or of an absent field "is missing: it must
// be …". The place is named beside it, so the words do not repeat the field. They never contain the value.

/** Where in a wrong value the problem is. `readConfigFile` adds it to the path of the field. */
export interface RuleContext {
  placeIn(value: unknown): Path;
}

type Test = (value: unknown) => boolean;
const isMapping: Test = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const isIn =
  (min: number, max: number): Test =>
  (value) =>
    typeof value === 'number' && value >= min && value <= max;

/** An empty value counts as an absent one. */
export const NullIsAbsent = (): PropertyDecorator => Transform(({ value }: { value: unknown }) => value ?? undefined);

/** The field may be absent or empty. */
export const MayBeAbsent = (): PropertyDecorator => all(IsOptional(), NullIsAbsent());

/** `what` completes "must be …". */
export function MustBe(what: string, isValid: Test): PropertyDecorator {
  return ValidateBy({
    name: 'mustBe',
    validator: {
      validate: isValid,
      defaultMessage: (of) => `${(of?.value ?? null) === null ? 'is missing: it ' : ''}must be ${what}`,
    },
  });
}

/**
 * A rule for the items of a list. `wrong`: where one is; empty if all are right. Values that are no lists have no wrong
 * item: another rule refuses them.
 */
function item(
  name: string,
  message: (items: unknown[]) => string,
  wrong: (items: unknown[]) => Path,
): PropertyDecorator {
  const placeIn = (value: unknown) => (Array.isArray(value) ? wrong(value as unknown[]) : []);
  const context: RuleContext = { placeIn };
  return ValidateBy(
    {
      name,
      validator: {
        validate: (value) => placeIn(value).length === 0,
        defaultMessage: (of) => message(of?.value as unknown[]),
      },
    },
    { context },
  );
}

function each(what: string, isValid: Test): PropertyDecorator {
  const wrong = (items: unknown[]) => items.findIndex((one) => !isValid(one));
  return item(
    'each',
    (items) => `${(items[wrong(items)] ?? null) === null ? 'is missing: it ' : ''}must be ${what}`,
    (items) => (wrong(items) < 0 ? [] : [wrong(items)]),
  );
}

/** Items with an `id` are equal if their ids are. */
function eachOnce(): PropertyDecorator {
  const names = (items: unknown[]) => items.map((one) => (isMapping(one) ? (one as { id?: unknown }).id : one));
  const second = (items: unknown[]) =>
    names(items).findIndex((name, index, all) => typeof name === 'string' && all.indexOf(name) < index);
  return item(
    'eachOnce',
    (items) => `"${String(names(items)[second(items)])}" must not be given twice`,
    (items) => (second(items) < 0 ? [] : isMapping(items[second(items)]) ? [second(items), 'id'] : [second(items)]),
  );
}

/** The rules together, as one decorator. */
const all =
  (...rules: PropertyDecorator[]): PropertyDecorator =>
  (target, name) => {
    for (const rule of rules) rule(target, name);
  };

const grouped = (value: number): string => value.toLocaleString('en-US');

export const MustBeWhole = (min: number, max: number): PropertyDecorator =>
  MustBe(
    `a whole number from ${grouped(min)} to ${grouped(max)}`,
    (value) => Number.isInteger(value) && isIn(min, max)(value),
  );

export const MustBeNumber = (min: number, max: number): PropertyDecorator =>
  MustBe(`a number from ${grouped(min)} to ${grouped(max)}`, isIn(min, max));

export const MustBeFlag = (): PropertyDecorator => MustBe('true or false', (value) => typeof value === 'boolean');

export const MustBeOneOf = (...values: readonly string[]): PropertyDecorator =>
  MustBe(`one of ${values.join(', ')}`, (value) => (values as readonly unknown[]).includes(value));

export const MustBeText = (maxChars: number): PropertyDecorator =>
  MustBe(`a text of 1 to ${grouped(maxChars)} characters`, (value) => isTextOf(value, maxChars));

export const MustMatch = (form: RegExp, what: string): PropertyDecorator => MustBe(what, matching(form));

/** A mapping with the fields of a class. */
export const MustBeSection = (type: new () => object, what = 'a mapping'): PropertyDecorator =>
  all(
    MustBe(what, isMapping),
    ValidateNested(),
    Type(() => type),
  );

/** At least one mapping with the fields of a class, each with another `id`, if it has one. */
export const MustBeSections = (type: new () => object, what: string): PropertyDecorator =>
  all(
    MustBe(`a list of at least one ${what}`, (value) => Array.isArray(value) && value.length > 0),
    each('a mapping', isMapping),
    eachOnce(),
    ValidateNested({ each: true }),
    Type(() => type),
  );

export const MustBeListOf = (
  what: { all: string; each: string },
  isValid: Test,
  { max = Infinity, repeats = false } = {},
): PropertyDecorator =>
  all(
    MustBe(
      `a list of ${max === Infinity ? '' : `at most ${max} `}${what.all}`,
      (value) => Array.isArray(value) && value.length <= max,
    ),
    each(what.each, isValid),
    ...(repeats ? [] : [eachOnce()]),
  );

export const matching =
  (form: RegExp): Test =>
  (value) =>
    typeof value === 'string' && form.test(value);

const isTextOf = (value: unknown, maxChars: number): boolean =>
  typeof value === 'string' && value.length >= 1 && value.length <= maxChars;
