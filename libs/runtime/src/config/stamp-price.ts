import { hash } from 'node:crypto';
import { parsePrice, type PriceStamp } from '@tollgate/contracts';
import type { ModelConfig, PriceConfig } from './tollgate-config';

const PRICE_VERSION_CHARS = 12;

/**
 * Converts prices of the configuration to integers, for the price stamp of requests and for metering. Embeddings have
 * no output. `version` is a short hash of the prices.
 */
export function stampPrice(price: PriceConfig, kind: ModelConfig['kind']): PriceStamp {
  const numbers = {
    inputFemtos: String(parsePrice(price.input)),
    cachedInputFemtos: String(parsePrice(price.cachedInput ?? price.input)),
    outputFemtos: kind === 'embedding' ? '0' : String(parsePrice(price.output)),
    // A price per request is in whole units, not per million: "0.01" is 10⁷ nanos.
    requestNanos: String(parsePrice(price.request)),
  };
  return { version: hash('sha256', JSON.stringify(numbers), 'hex').slice(0, PRICE_VERSION_CHARS), ...numbers };
}
