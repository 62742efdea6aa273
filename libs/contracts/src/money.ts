/**
 * Money in integers only. Public amounts are cents. Inner amounts are **nanos** (10⁻⁹ of the currency unit) as
 * bigint. Prices per token are **femtos** (10⁻¹⁵), which equals nanos per million tokens. See ADR 0002.
 */
export const NANOS_PER_CENT = 10_000_000n;
export const FEMTOS_PER_NANO = 1_000_000n;

/** The prices of one request, stamped at admission. A later price change does not affect a running request. */
export interface PriceStamp {
  /** A short hash of the prices. It identifies the `tollgate.yaml` that they came from. */
  version: string;
  /** Femtos per prompt token that was not served from a cache; decimal string. */
  inputFemtos: string;
  /** Femtos per cached prompt token; decimal string. */
  cachedInputFemtos: string;
  /** Femtos per output token; decimal string. */
  outputFemtos: string;
  /** Nanos per request; decimal string. */
  requestNanos: string;
}

/** Token counts of one request. `cachedTokens` is a part of `promptTokens`. */
export interface TokenCounts {
  promptTokens: number;
  cachedTokens: number;
  completionTokens: number;
}

/** The maximum of metering's columns: far above the use of any request. */
export const MAX_TOKEN_COUNT = 2 ** 31 - 1;

/**
 * The cost of the tokens in nanos: the exact sum over the disjoint dimensions, rounded up once. Throws RangeError for a
 * count that is not a non-negative integer, and for more cached than prompt tokens.
 */
export function costNanos(tokens: TokenCounts, price: PriceStamp): bigint {
  const { promptTokens, cachedTokens, completionTokens } = tokens;
  for (const count of [promptTokens, cachedTokens, completionTokens]) {
    if (!Number.isSafeInteger(count) || count < 0) throw new RangeError(`not a token count: ${count}`);
  }
  if (cachedTokens > promptTokens) throw new RangeError(`${cachedTokens} cached of ${promptTokens} prompt tokens`);
  const femtos =
    BigInt(promptTokens - cachedTokens) * BigInt(price.inputFemtos) +
    BigInt(cachedTokens) * BigInt(price.cachedInputFemtos) +
    BigInt(completionTokens) * BigInt(price.outputFemtos) +
    BigInt(price.requestNanos) * FEMTOS_PER_NANO;
  return ceilDiv(femtos, FEMTOS_PER_NANO);
}

/** `a / b` rounded up, for a ≥ 0 and b > 0. */
export function ceilDiv(a: bigint, b: bigint): bigint {
  return (a + b - 1n) / b;
}

/**
 * Converts a price of `tollgate.yaml` per million tokens (a decimal string such as "0.15") to nanos per million, which
 * equals femtos per token. Throws RangeError if it is not a plain non-negative decimal, has more than nine decimals, or
 * is above 1,000,000.
 */
export function parsePrice(text: string): bigint {
  const match = /^(\d{1,7})(?:\.(\d{1,9}))?$/.exec(text);
  if (!match) throw new RangeError(`"${text}" is not a price: a decimal with up to nine places, such as "0.15"`);
  const nanos = BigInt(match[1]!) * 1_000_000_000n + BigInt((match[2] ?? '').padEnd(9, '0'));
  if (nanos > 1_000_000_000_000_000n) throw new RangeError(`"${text}" is above 1000000`);
  return nanos;
}

/**
 * Rounds parts to whole cents so that they add up exactly to the rounded total (largest remainder; ties by position).
 * @param parts nanos, each ≥ 0
 * @returns cents of the total (half up) and of each part, in the order given
 */
export function roundPartsToCents(parts: readonly bigint[]): { totalCents: bigint; partCents: bigint[] } {
  const total = parts.reduce((sum, part) => sum + part, 0n);
  const totalCents = (total + NANOS_PER_CENT / 2n) / NANOS_PER_CENT;
  const partCents = parts.map((part) => part / NANOS_PER_CENT);
  let missing = totalCents - partCents.reduce((sum, part) => sum + part, 0n);
  const byRemainder = parts
    .map((part, index) => ({ index, remainder: part % NANOS_PER_CENT }))
    .sort((a, b) => (a.remainder === b.remainder ? a.index - b.index : a.remainder > b.remainder ? -1 : 1));
  for (const { index } of byRemainder) {
    if (missing <= 0n) break;
    partCents[index]! += 1n;
    missing -= 1n;
  }
  return { totalCents, partCents };
}

/** Whole cents as "10.00 USD". */
export function formatCents(cents: number | bigint, currency: string): string {
  const digits = String(cents).replace('-', '').padStart(3, '0');
  return `${cents < 0 ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)} ${currency}`;
}
