import { Anchor, Button, Group, Text, Title } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { BillingSummary } from '../../../src/api/answers';
import { api, queryOf } from '../backend/api';
import { count, Money, Time } from '../parts/format';
import { askAllEveryMs } from '../backend/live-lists';
import { usePerson, useTenant } from '../backend/me';
import { DataTable, Empty, Loading, Page, Unanswered } from '../parts/page';
import { Incomplete, PrintAllButton } from './receipt-print';

/** The ledger of the tenant with the running balance, and its invoices. */
export function CreditPage() {
  const { id, path } = useTenant();
  const { currency } = usePerson();
  const credit = useInfiniteQuery({
    queryKey: ['credit', id],
    queryFn: ({ pageParam }) => api.get<BillingSummary>(path('credit') + queryOf({ after: pageParam })),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: askAllEveryMs,
  });
  const [first] = credit.data?.pages ?? [];
  if (!first) return <Page title="Credit">{credit.error ? <Unanswered of={credit} /> : <Loading />}</Page>;
  const entries = credit.data?.pages.flatMap((page) => page.entries) ?? [];
  // From the newest entry back: the balance after it is today's.
  let after = first.balanceCents;
  const rows = entries.map((entry) => {
    const row = { ...entry, balanceCents: after };
    after -= entry.amountCents;
    return row;
  });
  return (
    <Page
      title="Credit"
      about={
        <>
          The balance is <Money cents={first.balanceCents} currency={currency} />.
        </>
      }
      action={<PrintAllButton of={credit} />}
    >
      {credit.isFetchNextPageError ? null : <Unanswered of={credit} />}
      <Title order={2} size="h4">
        Entries
      </Title>
      {rows.length === 0 ? (
        <Empty
          text="There are no entries yet. An operator adds credit:"
          command={`npx tollgate credit add ${id} 10.00`}
        />
      ) : (
        <DataTable
          label="Entries"
          ids={rows.map((entry) => entry.id)}
          head={['Time (UTC)', 'Type', '#Amount', '#Balance after', 'Source', 'Reference', 'Receipt']}
          rows={rows.map((entry) => [
            <Time at={entry.createdAt} />,
            entry.type,
            <Money cents={entry.amountCents} currency={currency} />,
            <Money cents={entry.balanceCents} currency={currency} />,
            entry.source,
            entry.ref,
            <Anchor
              component={Link}
              to="/t/$tenantId/credit/$entryId"
              params={{ tenantId: id, entryId: entry.id } as never}
              underline="always"
              size="sm"
              aria-label={`Receipt ${entry.id}`}
            >
              Receipt
            </Anchor>,
          ])}
        />
      )}
      {credit.isFetchNextPageError ? <Unanswered of={credit} /> : null}
      <Incomplete
        of={credit}
        text={`The newest ${count(entries.length)} entries are listed here. The balance is that of all.`}
      />
      {credit.hasNextPage ? (
        <Group className="screen">
          <Button variant="default" onClick={() => void credit.fetchNextPage()} loading={credit.isFetchingNextPage}>
            Older entries
          </Button>
        </Group>
      ) : null}
      <Title order={2} size="h4">
        Invoices
      </Title>
      {first.invoices.some(({ accountingNumber }) => accountingNumber !== null) ? null : (
        <Text size="sm">No invoice has been issued yet. A month that used credit gets one after its end.</Text>
      )}
      <DataTable
        label="Invoices"
        head={['Month (UTC)', 'Number', '#Amount', 'Status']}
        rows={first.invoices.map((invoice) => [
          invoice.period,
          invoice.accountingNumber === null ? (
            '–'
          ) : (
            <Anchor
              component={Link}
              to="/t/$tenantId/invoices/$number"
              params={{ tenantId: id, number: String(invoice.accountingNumber) } as never}
              underline="always"
            >
              {invoice.accountingNumber}
            </Anchor>
          ),
          <Money cents={invoice.amountCents} currency={currency} />,
          invoice.status,
        ])}
      />
    </Page>
  );
}
