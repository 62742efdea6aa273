import { Button, Group, Select, Text, TextInput } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { AuditList, AuditRow } from '../../../src/api/answers';
import { api, pathOf, queryOf } from '../api';
import { downloadCsv } from '../download';
import { Failure } from '../failure';
import { amountOfCents, Time } from '../format';
import { usePerson, useTenant } from '../me';
import { DataTable, Empty, Loading, Page } from '../page';

const NONE_OF_TENANT =
  'Nothing was changed yet. Changes of keys, tokens, members, budgets, credit and plan appear here, with their author.';
const NONE_OF_ALL =
  'Nothing was changed yet. Changes of tenants, people, credit, invoices and backends appear here, with their author.';

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

/** Operator → Audit: the changes of all tenants, and those of none. */
export function OperatorAuditPage() {
  return <AuditPage of="/operator/audit" about="Who changed what, newest first." empty={NONE_OF_ALL} />;
}

function AuditPage({ of, about, empty }: { of: string; about: string; empty: string }) {
  const [action, setAction] = useState<string | null>(null);
  const [author, setAuthor] = useState('');
  const log = useInfiniteQuery({
    queryKey: ['audit', of, action, author],
    queryFn: ({ pageParam }) =>
      api.get<AuditList>(of + queryOf({ after: pageParam, action: action ?? undefined, author: author.trim() })),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
  });
  const isFiltered = action !== null || author.trim() !== '';
  const rows = log.data?.pages.flatMap(({ data }) => data) ?? [];
  return (
    <Page
      title="Audit"
      about={about}
      action={
        <Button variant="default" disabled={rows.length === 0} onClick={() => downloadCsv('audit.csv', rows.map(flat))}>
          CSV of the rows below
        </Button>
      }
    >
      <Group align="flex-end">
        <Select
          label="Change"
          clearable
          searchable
          data={log.data?.pages[0]?.actions ?? []}
          value={action}
          onChange={setAction}
        />
        <TextInput
          label="Author, by id or name"
          value={author}
          onChange={({ currentTarget }) => setAuthor(currentTarget.value)}
        />
      </Group>
      <Failure error={log.error} />
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
