import { MustBe } from './config-rules';

/**
 * A price: a decimal string with up to nine places, e.g. "0.15". A YAML number is refused, because 0.1 is not exact in
 * binary.
 */
export const IsPrice = (): PropertyDecorator =>
  MustBe(
    'a price in quotes, a decimal such as "0.15" (per million tokens), "0" for free',
    (value) => typeof value === 'string' && /^\d{1,7}(\.\d{1,9})?$/.test(value) && Number(value) <= 1_000_000,
  );
