import { RequestError } from '@tollgate/contracts';
import type { TollgateConfig } from '@tollgate/runtime';

/** The named profile of a plan, or its first one. RequestError invalid_profile. */
export function profileOf({ plans }: Pick<TollgateConfig, 'plans'>, plan: string, wanted: string | undefined): string {
  const profiles = plans.find(({ id }) => id === plan)?.profiles ?? [];
  const chosen = wanted === undefined ? profiles[0] : profiles.find(({ id }) => id === wanted);
  if (!chosen) {
    const given = wanted === undefined ? '' : `; "${wanted}" is not one`;
    throw new RequestError('invalid_profile', `profile must name a key profile of the tenant's plan${given}.`);
  }
  return chosen.id;
}

/**
 * The ids of models that a key may use; null: all models of its profile. RequestError invalid_models: one does not
 * exist.
 */
export function modelsOf({ models }: Pick<TollgateConfig, 'models'>, wanted: string[] | null): string[] | null {
  const unknown = wanted?.find((name) => !models.some(({ id }) => id === name));
  if (unknown !== undefined)
    throw new RequestError('invalid_models', `models must be ids of models that exist; "${unknown}" is not one.`);
  return wanted;
}
