import type { TollgateConfig } from '@tollgate/runtime';

/** In the place of a secret, and of what may contain one. */
const BLANK = '(secret)';

type Backend = TollgateConfig['models'][number]['backends'][number];

/**
 * `tollgate.yaml` as it is in force, with its defaults and with every secret blanked. The standalone form has the
 * secrets in memory; the console as a service never reads them, and leaves their fields out.
 */
export function wholeConfiguration({ models, ...rest }: TollgateConfig): Record<string, unknown> {
  return {
    ...rest,
    models: models.map(({ backends, ...model }) => ({ ...model, backends: backends.map(withoutSecrets) })),
  };
}

/** The URL of a backend has no query and no user, so it is no secret. The one of its metrics may have a query. */
function withoutSecrets({ apiKey, headers, tls, metrics, ...backend }: Backend): Record<string, unknown> {
  return {
    ...backend,
    ...(metrics !== undefined && { metrics: metrics.replace(/\?.*$/s, `?${BLANK}`) }),
    ...(apiKey !== undefined && { apiKey: BLANK }),
    ...(headers && { headers: blanked(headers) }),
    ...(tls && { tls: { ...blanked(tls), ...(tls.serverName !== undefined && { serverName: tls.serverName }) } }),
  };
}

const blanked = (values: object): Record<string, string> =>
  Object.fromEntries(
    Object.entries(values)
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([name]) => [name, BLANK]),
  );
