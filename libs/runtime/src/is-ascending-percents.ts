import { buildMessage, ValidateBy } from 'class-validator';

const MAX_PERCENTS = 10;

/** 1 to MAX_PERCENTS whole numbers from 1 to 100, ascending, each once. */
export function IsAscendingPercents(): PropertyDecorator {
  return ValidateBy({
    name: 'isAscendingPercents',
    validator: {
      validate: (value: unknown) =>
        Array.isArray(value) &&
        value.length >= 1 &&
        value.length <= MAX_PERCENTS &&
        value.every((item, i) => Number.isInteger(item) && item > (i === 0 ? 0 : value[i - 1]) && item <= 100),
      defaultMessage: buildMessage(
        () => `$property must be 1 to ${MAX_PERCENTS} whole numbers from 1 to 100, ascending, each once`,
      ),
    },
  });
}
