import { Button, Group, Select, Text } from '@mantine/core';
import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { AuditList, AuditRow } from '../../../src/api/answers';
import { api, pathOf, queryOf } from '../backend/api';
import { downloadCsv } from '../parts/download';
import { Failure } from '../parts/failure';
import { SearchField } from '../parts/filter';
import { amountOfCents, count, Time } from '../parts/format';
import { usePerson, useTenant } from '../backend/me';
import { DataTable, Empty, Loading, Page } from '../parts/page';
import { RangeFields } from '../usage/range-fields';

const NONE_OF_TENANT =
  'Nothing has been changed yet. Changes of keys, tokens, members, budgets, credit and plan appear here, with their author.';
const NONE_OF_ALL =
  'Nothing has been changed yet. Changes of tenants, people, credit, invoices and backends appear here, with their author.';

/** Settings → Audit: the changes of one tenant. */
export function TenantAuditPage() {
  const { id } = useTenant();
  return (
    <AuditPage
      of={pathOf('tenants', id, 'audit')}
      about="Who changed what in this tenant, newest first."
      empty={NONE_OF_TENANT}
    />
  );
}

/** Operator → Audit: the changes of all tenants, and changes without a tenant. */
export function OperatorAuditPage() {
  return <AuditPage of="/operator/audit" about="Who changed what, newest first." empty={NONE_OF_ALL} />;
}

/** The filters, in the URL. */
export interface AuditSearch {
  action?: string | undefined;
  /** The id or the name. */
  author?: string | undefined;
  /** From inclusive, to exclusive; ISO 8601. */
  from?: string | undefined;
  to?: string | undefined;
}

/** A page of the file. */
const FILE_PAGE_ROWS = '200';
/** More take the browser too much memory. */
const MAX_FILE_ROWS = 50_000;

/** All rows that the filters match, newest first, at most MAX_FILE_ROWS. */
async function matching(of: string, filters: AuditSearch): Promise<{ rows: AuditRow[]; isCut: boolean }> {
  const rows: AuditRow[] = [];
  let after: string | null = '';
  while (after !== null && rows.length < MAX_FILE_ROWS) {
    const page: AuditList = await api.get(of + queryOf({ ...filters, after, limit: FILE_PAGE_ROWS }));
    rows.push(...page.data);
    after = page.nextCursor;
  }
  return { rows, isCut: after !== null };
}

function AuditPage({ of, about, empty }: { of: string; about: string; empty: string }) {
  const search: AuditSearch = useSearch({ strict: false });
  const { action, author, from, to } = search;
  const filters = { action, author, from, to };
  const navigate = useNavigate();
  const log = useInfiniteQuery({
    queryKey: ['audit', of, filters],
    queryFn: ({ pageParam }) => api.get<AuditList>(of + queryOf({ ...filters, after: pageParam })),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
  });
  const file = useMutation({
    mutationFn: () => matching(of, filters),
    onSuccess: ({ rows: all }) => downloadCsv('audit.csv', all.map(flat)),
  });
  const choose = (next: AuditSearch) => {
    // What was said of the last file is not true of the next one.
    file.reset();
    void navigate({ to: '.', search: { ...search, ...next } as never, replace: true });
  };
  const isFiltered = Object.values(filters).some(Boolean);
  const rows = log.data?.pages.flatMap(({ data }) => data) ?? [];
  return (
    <Page
      title="Audit"
      about={about}
      action={
        <Button variant="default" disabled={rows.length === 0} loading={file.isPending} onClick={() => file.mutate()}>
          Download CSV
        </Button>
      }
    >
      <Group align="flex-end">
        <Select
          label="Change"
          clearable
          searchable
          data={log.data?.pages[0]?.actions ?? []}
          value={action ?? null}
          onChange={(value) => choose({ action: value ?? undefined })}
        />
        <SearchField
          label="Author, by id or name"
          value={author ?? ''}
          onSearch={(text) => choose({ author: text || undefined })}
        />
        <RangeFields value={{ from, to }} onChange={choose} />
      </Group>
      {file.data?.isCut ? (
        <Text size="sm" role="status">
          The file has the newest {count(MAX_FILE_ROWS)} changes. Choose a shorter time for those before them.
        </Text>
      ) : null}
      <Failure error={log.error ?? file.error} />
      {log.isPending ? <Loading /> : null}
      {log.data === undefined ? null : rows.length === 0 ? (
        <Empty text={isFiltered ? 'No change matches these filters.' : empty} />
      ) : (
        <DataTable
          label="Audit"
          head={['Time (UTC)', 'Change', 'Author', 'Target', 'Fields']}
          rows={rows.map((row) => [
            <Time at={row.at} />,
            row.action,
            <>
              {authorOf(row)}
              {row.by.address === null ? null : <Text size="xs">from {row.by.address}</Text>}
            </>,
            <>
              {row.target ?? row.tenantId ?? '–'}
              {row.by.requestId === null ? null : <Text size="xs">request {row.by.requestId}</Text>}
            </>,
            <Fields of={row} />,
          ])}
        />
      )}
      {log.hasNextPage ? (
        <Group>
          <Button variant="default" onClick={() => void log.fetchNextPage()} loading={log.isFetchingNextPage}>
            Older changes
          </Button>
        </Group>
      ) : null}
    </Page>
  );
}

const NAMELESS = {
  secret: 'operator secret',
  operator: 'operator',
  token: 'token',
  person: 'person',
  service: 'service',
};

const authorOf = ({ by }: AuditRow): string =>
  by.name ?? (by.id === null ? NAMELESS[by.kind] : `${NAMELESS[by.kind]} ${by.id}`);

/** What changed: each field with its value, or with the one before and the one after. */
function Fields({ of: { before, after } }: { of: AuditRow }) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const { currency } = usePerson();
  if (names.length === 0) return <>–</>;
  return (
    <Text size="xs" className="fields">
      {names.map((name) => (
        <span key={name}>
          {name.replace(/Cents$/, '')}:{' '}
          {[before, after]
            .flatMap((fields) => (fields && name in fields ? [textOf(fields[name], name, currency)] : []))
            .join(' → ')}
        </span>
      ))}
    </Text>
  );
}

function textOf(value: unknown, name = '', currency = ''): string {
  if (name.endsWith('Cents') && typeof value === 'number') return `${amountOfCents(value)} ${currency}`;
  if (value === null) return 'none';
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map((one) => textOf(one)).join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A row with one text for each column. */
function flat({ by, before, after, ...row }: AuditRow) {
  return {
    ...row,
    authorKind: by.kind,
    authorId: by.id,
    authorName: by.name,
    address: by.address,
    requestId: by.requestId,
    before: before && JSON.stringify(before),
    after: after && JSON.stringify(after),
  };
}
