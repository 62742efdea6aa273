/**
 * Reads a decimal amount of currency units as whole cents, exactly: "10", "10.5" or "10.50", without a sign or
 * thousands separators. Throws RangeError with the reason.
 */
export function parseAmount(text: string): number {
  return readCents(text, 'a positive number');
}

/** More digits than MAX_SAFE_INTEGER cents have, and few enough for BigInt. */
const MAX_DIGITS = 100;

function readCents(text: string, wanted: string): number {
  const match = text.length <= MAX_DIGITS ? /^(\d+)(?:\.(\d{1,2}))?$/.exec(text) : null;
  if (!match)
    throw new RangeError(`It must be ${wanted} of currency units with at most two decimals, such as 10 or 10.50.`);
  const cents = BigInt(match[1]!) * 100n + BigInt((match[2] ?? '').padEnd(2, '0'));
  if (cents === 0n) throw new RangeError('It must be more than zero.');
  if (cents > BigInt(Number.MAX_SAFE_INTEGER)) throw new RangeError('It is too large.');
  return Number(cents);
}

/** The same with a sign: "-10.50" subtracts. */
export function parseSignedAmount(text: string): number {
  const negative = text.startsWith('-');
  const cents = readCents(negative ? text.slice(1) : text, 'a number');
  return negative ? -cents : cents;
}

/** Reads a budget: an amount that may be zero, "none" (null) or "default". Throws RangeError with the reason. */
export function parseBudget(text: string): number | null | 'default' {
  if (text === 'none') return null;
  if (text === 'default') return text;
  return /^0(\.0{1,2})?$/.test(text) ? 0 : readCents(text, '"none", "default" or a number');
}

/** Formats nanos (a decimal string of 10⁻⁹ units) to the last place: "0.000123400 USD". */
export function formatNanos(nanos: string, currency: string): string {
  const value = BigInt(nanos);
  const digits = String(value < 0n ? -value : value).padStart(10, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -9)}.${digits.slice(-9)} ${currency}`;
}
