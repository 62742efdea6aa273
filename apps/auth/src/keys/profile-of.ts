import { RequestError } from '@tollgate/contracts';
import type { TollgateConfig } from '@tollgate/runtime';

/** The named profile of a plan, or its first one. RequestError invalid_profile. */
export function profileOf({ plans }: Pick<TollgateConfig, 'plans'>, plan: string, wanted: string | undefined): string {
  const profiles = plans.find(({ id }) => id === plan)?.profiles ?? [];
  const chosen = wanted === undefined ? profiles[0] : profiles.find(({ id }) => id === wanted);
  if (!chosen) throw new RequestError('invalid_profile', "profile must name a key profile of the tenant's plan.");
  return chosen.id;
}
