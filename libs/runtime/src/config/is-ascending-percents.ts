import { MustBe } from './config-rules';

const MAX_PERCENTS = 10;

/** 1 to MAX_PERCENTS whole numbers from 1 to 100, ascending, each once. */
export const IsAscendingPercents = (): PropertyDecorator =>
  MustBe(
    `a list of 1 to ${MAX_PERCENTS} whole numbers from 1 to 100, ascending, each once`,
    (value) =>
      Array.isArray(value) &&
      value.length >= 1 &&
      value.length <= MAX_PERCENTS &&
      value.every((item, i) => Number.isInteger(item) && item > (i === 0 ? 0 : value[i - 1]) && item <= 100),
  );
