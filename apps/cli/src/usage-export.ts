import type { Context } from './commands';

/** For a stream of tens of millions of lines. */
const TIMEOUT_MS = 6 * 3_600_000;

export interface UsageExport {
  from?: string;
  to?: string;
  step: string;
  format: string;
  tenant?: string;
  model?: string;
  key?: string;
  provider?: string;
}

/** Writes the export to stdout as it comes. */
export async function exportUsage({ client }: Context, options: UsageExport): Promise<void> {
  const { tenant, key, from, to, step, format, model, provider } = options;
  const named = { from, to, step, format, model, provider, tenantId: tenant, keyId: key };
  const given = Object.entries(named).filter((entry): entry is [string, string] => entry[1] !== undefined);
  await client.download(`/usage/export?${new URLSearchParams(given).toString()}`, process.stdout, TIMEOUT_MS);
}
