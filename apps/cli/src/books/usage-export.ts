import type { Context } from '../command/context';

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

/** The formats whose first line names the columns. */
const WITH_HEAD = ['csv', 'focus'];

/** Writes the export to stdout as it comes. An export without rows is a success, and says so on stderr. */
export async function exportUsage({ client, output }: Context, options: UsageExport): Promise<void> {
  const { tenant, key, from, to, step, format, model, provider } = options;
  const named = { from, to, step, format, model, provider, tenantId: tenant, keyId: key };
  const given = Object.entries(named).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const query = new URLSearchParams(given).toString();
  const lines = await client.download(`/usage/export?${query}`, process.stdout, TIMEOUT_MS);
  if (lines === null || lines > (WITH_HEAD.includes(format) ? 1 : 0)) return;
  const filtered = tenant ?? model ?? key;
  const range = `${from ?? 'the first of this month'} to ${to ?? 'now'}`;
  output.note(`tollgate: no events in ${range}${filtered === undefined ? '' : ' that match the filter'}`);
}
