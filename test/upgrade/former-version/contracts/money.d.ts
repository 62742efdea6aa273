// Of commit 351276700c9b45dbbf3b7c464f61b8189a42caa1. Kept by tools/checks/former-contracts.mjs.
export declare const NANOS_PER_CENT = 10000000n;
export declare const FEMTOS_PER_NANO = 1000000n;
export interface PriceStamp {
  version: string;
  inputFemtos: string;
  cachedInputFemtos: string;
  outputFemtos: string;
  requestNanos: string;
}
export interface TokenCounts {
  promptTokens: number;
  cachedTokens: number;
  completionTokens: number;
}
export declare const MAX_TOKEN_COUNT: number;
export declare function costNanos(tokens: TokenCounts, price: PriceStamp): bigint;
export declare function ceilDiv(a: bigint, b: bigint): bigint;
export declare function parsePrice(text: string): bigint;
export declare function roundPartsToCents(parts: readonly bigint[]): {
  totalCents: bigint;
  partCents: bigint[];
};
export declare function formatCents(cents: number | bigint, currency: string): string;
