import type { TollgateConfig } from '@tollgate/runtime';
import type { ModelRow } from '../answers';

/** The models of the configuration with their prices, as written there. */
export function modelRows({ models }: TollgateConfig): ModelRow[] {
  return models.map(({ id, kind, ownedBy, contextTokens, maxOutputTokens, price }) => ({
    id,
    kind,
    ownedBy,
    contextTokens,
    maxOutputTokens: maxOutputTokens ?? contextTokens,
    price: {
      input: price.input,
      cachedInput: price.cachedInput ?? null,
      output: price.output,
      request: price.request,
    },
  }));
}
