import type { PriceStamp } from '@tollgate/contracts';

const FEMTO_DECIMALS = 15;
const NANO_DECIMALS = 9;

/**
 * A row of `GET /models`. The first four fields are OpenAI's. `max_model_len` is vLLM's name and `context_length`
 * OpenRouter's for the same number of tokens, and `pricing` has OpenRouter's fields.
 */
export interface ModelRow {
  id: string;
  object: 'model';
  created: number;
  owned_by: string;
  context_length: number;
  max_model_len: number;
  /** Decimal amounts in `currency`: for one token of each kind, and for a request. */
  pricing: { currency: string; prompt: string; input_cache_read: string; completion: string; request: string };
}

/** The price as it is charged, without rounding. */
export function pricingOf(price: PriceStamp, currency: string): ModelRow['pricing'] {
  return {
    currency,
    prompt: decimal(price.inputFemtos, FEMTO_DECIMALS),
    input_cache_read: decimal(price.cachedInputFemtos, FEMTO_DECIMALS),
    completion: decimal(price.outputFemtos, FEMTO_DECIMALS),
    request: decimal(price.requestNanos, NANO_DECIMALS),
  };
}

/** A whole number of units of 10^-decimals as a decimal amount: 150000000 with 15 is 0.00000015. */
function decimal(units: string, decimals: number): string {
  const digits = units.padStart(decimals + 1, '0');
  const fraction = digits.slice(-decimals).replace(/0+$/, '');
  return digits.slice(0, -decimals) + (fraction === '' ? '' : `.${fraction}`);
}
