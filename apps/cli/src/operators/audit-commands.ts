import type { AuditRow, Author } from '@tollgate/contracts';
import { type Context, noteTruncated } from '../command/context';
import { printable, table } from '../command/table';

export interface AuditFilter {
  tenant?: string;
  action?: string;
  target?: string;
  author?: string;
  request?: string;
  from?: string;
  to?: string;
}

const MAX_SHOWN_CHARS = 100;

export async function listAudit({ client, output }: Context, filter: AuditFilter): Promise<void> {
  const { rows, truncated } = await client.list<AuditRow>(`/audit${queryOf(filter)}`);
  const cells = rows.map(({ at, by, action, tenantId, target, before, after }) => [
    ...[at, authorOf(by), action, tenantId ?? '-', target ?? '-'],
    changeOf(before, after),
  ]);
  output.answer(rows, table(['TIME', 'BY', 'ACTION', 'TENANT', 'TARGET', 'CHANGE'], cells, 'No such changes.'));
  noteTruncated(output, truncated);
}

/** All changes of the filter as CSV on stdout. */
export async function exportAudit({ client }: Context, filter: AuditFilter): Promise<void> {
  await client.download(`/audit/export${queryOf(filter)}`, process.stdout);
}

function queryOf({ tenant, action, target, author, request, from, to }: AuditFilter): string {
  const named = { tenantId: tenant, action, target, author, requestId: request, from, to };
  const given = Object.entries(named).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
}

const authorOf = ({ kind, id, name }: Author): string => printable(name ?? id ?? kind);

/** `plan: free → pro`, or the fields of something new. */
function changeOf(before: AuditRow['before'], after: AuditRow['after']): string {
  const text = Object.entries(after ?? {})
    .map(([field, value]) =>
      before && field in before ? `${field}: ${shown(before[field])} → ${shown(value)}` : `${field}: ${shown(value)}`,
    )
    .join(', ');
  return text.length <= MAX_SHOWN_CHARS ? text : `${text.slice(0, MAX_SHOWN_CHARS - 1)}…`;
}

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
