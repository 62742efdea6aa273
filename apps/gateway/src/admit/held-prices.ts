import { FEMTOS_PER_NANO } from '@tollgate/contracts';
import type { CatalogModel } from '../catalog/catalog';

/** The prices that a hold is computed at. */
export type HeldPrices = Pick<CatalogModel, 'promptFemtosPerToken' | 'outputFemtosPerToken' | 'requestFemtos'>;

/** The higher of each price: whichever of the models serves, the hold covers it. */
export function highestPrices(models: readonly HeldPrices[]): HeldPrices {
  return models.reduce((a, b) => ({
    promptFemtosPerToken: higher(a.promptFemtosPerToken, b.promptFemtosPerToken),
    outputFemtosPerToken: higher(a.outputFemtosPerToken, b.outputFemtosPerToken),
    requestFemtos: higher(a.requestFemtos, b.requestFemtos),
  }));
}

/** Whether a hold at the model's prices may not cover a request that one of these serves. */
export function hasMoreExpensive(model: HeldPrices, fallbacks: readonly HeldPrices[]): boolean {
  return fallbacks.some((one) => isMoreExpensive(one, model));
}

export function withoutMoreExpensive<M extends HeldPrices>(model: HeldPrices, fallbacks: readonly M[]): M[] {
  return fallbacks.filter((one) => !isMoreExpensive(one, model));
}

/** The cost of a prompt's upper bound, with the price of the request itself. */
export function promptFemtos({ upperBound }: { readonly upperBound: number }, prices: HeldPrices): bigint {
  return BigInt(upperBound) * prices.promptFemtosPerToken + prices.requestFemtos;
}

/** The tokens of output that a hold covers beside its prompt. */
export function outputCovered(holdNanos: bigint, promptFemtos: bigint, { outputFemtosPerToken }: HeldPrices): number {
  if (outputFemtosPerToken === 0n) return Infinity;
  return Number((holdNanos * FEMTOS_PER_NANO - promptFemtos) / outputFemtosPerToken);
}

function isMoreExpensive(one: HeldPrices, than: HeldPrices): boolean {
  return (
    one.promptFemtosPerToken > than.promptFemtosPerToken ||
    one.outputFemtosPerToken > than.outputFemtosPerToken ||
    one.requestFemtos > than.requestFemtos
  );
}

function higher(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
