const NANOS_PER_UNIT = 1_000_000_000n;

/** An amount of a page in nanos: all its digits are there. */
export function nanosOf(shown: string): bigint {
  const [, sign, whole = '', decimals = ''] = /^(−?)([\d,]+)\.(\d+)/.exec(shown.trim()) ?? [];
  const size = BigInt(whole.replaceAll(',', '')) * NANOS_PER_UNIT + BigInt(decimals.padEnd(9, '0'));
  return sign === '−' ? -size : size;
}
