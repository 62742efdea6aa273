import { Anchor, Badge, Button, Group, TextInput } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { InvoiceList } from '../../../src/api/answers';
import { api, queryOf } from '../backend/api';
import { Failure } from '../parts/failure';
import { Money, Time } from '../parts/format';
import { usePerson } from '../backend/me';
import { DataTable, Empty, Loading, Page } from '../parts/page';

const MONTH = /^\d{4}-(0[1-9]|1[0-2])$/;
const MONTH_CHARS = 7;

/** Operator → Invoices: the issued invoices of all tenants. */
export function OperatorInvoicesPage() {
  const { currency } = usePerson();
  const [month, setMonth] = useState('');
  const period = MONTH.test(month) ? month : undefined;
  const invoices = useInfiniteQuery({
    queryKey: ['operator', 'invoices', period],
    queryFn: ({ pageParam }) => api.get<InvoiceList>(`/operator/invoices${queryOf({ after: pageParam, period })}`),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
  });
  const rows = invoices.data?.pages.flatMap(({ data }) => data) ?? [];
  return (
    <Page title="Invoices" about="Months that are over, newest number first. An open month is shown with its tenant.">
      <TextInput
        label="Month (YYYY-MM)"
        maw={200}
        value={month}
        error={month === '' || period ? null : 'A month is written like 2026-11.'}
        onChange={({ currentTarget }) => setMonth(currentTarget.value)}
      />
      <Failure error={invoices.error} />
      {invoices.isPending ? <Loading /> : null}
      {invoices.data === undefined ? null : rows.length === 0 ? (
        period === undefined ? (
          <Empty
            text="No invoice has been issued yet. Months are closed automatically. This closes the last one now:"
            command={`npx tollgate invoice close ${lastMonth()}`}
          />
        ) : (
          <Empty text="No invoice has been issued for this month." />
        )
      ) : (
        <DataTable
          label="Invoices"
          head={['Number', 'Tenant', 'Tenant id', 'Month (UTC)', '#Amount', 'Status', 'Issued (UTC)']}
          rows={rows.map((invoice) => [
            <Anchor
              component={Link}
              to="/t/$tenantId/invoices/$number"
              params={{ tenantId: invoice.tenantId, number: String(invoice.accountingNumber) } as never}
              underline="always"
            >
              {invoice.accountingNumber}
            </Anchor>,
            invoice.tenantName ?? '–',
            invoice.tenantId,
            invoice.period,
            <Money cents={invoice.amountCents} currency={currency} />,
            <Badge variant="outline" color={invoice.status === 'paid' ? 'green' : 'gray'}>
              {invoice.status}
            </Badge>,
            <Time at={invoice.createdAt} />,
          ])}
        />
      )}
      {invoices.hasNextPage ? (
        <Group>
          <Button variant="default" onClick={() => void invoices.fetchNextPage()} loading={invoices.isFetchingNextPage}>
            Older invoices
          </Button>
        </Group>
      ) : null}
    </Page>
  );
}

/** The month before the running one, UTC. */
function lastMonth(): string {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1)).toISOString().slice(0, MONTH_CHARS);
}
