import { Anchor, Button, Group } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import type { Receipt } from '../../../src/api/answers';
import { api, queryOf } from '../backend/api';
import { count, Money, Time } from '../parts/format';
import { usePerson, useTenant } from '../backend/me';
import { DataTable, Facts, Loading, Page, Sums, Unanswered } from '../parts/page';
import { Incomplete, PrintAllButton } from './receipt-print';

const NANOS_PER_CENT = 10_000_000n;
const TYPES = {
  topup: 'Credit added',
  refund: 'Credit paid back',
  adjustment: 'Adjustment',
  usage: 'Usage',
} as const satisfies Record<Receipt['entry']['type'], string>;

/** One ledger entry for the screen and for paper; for usage, with the requests that it debits. */
export function ReceiptPage() {
  const { entryId = '' } = useParams({ strict: false });
  const { id, path } = useTenant();
  const receipt = useInfiniteQuery({
    queryKey: ['receipt', id, entryId],
    queryFn: ({ pageParam }) => api.get<Receipt>(path('credit', entryId) + queryOf({ after: pageParam })),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
  });
  const [first] = receipt.data?.pages ?? [];
  const requests = receipt.data?.pages.flatMap((page) => page.requests) ?? [];
  return (
    <Page
      title="Receipt"
      about="One entry of the ledger. Entries never change."
      action={first ? <PrintAllButton of={receipt} /> : null}
    >
      {first ? <Sheet of={first} requests={requests} /> : null}
      <Incomplete
        of={receipt}
        text={`The first ${count(requests.length)} requests are listed here. The sum is that of all.`}
      />
      <Unanswered of={receipt} />
      {receipt.isPending ? <Loading /> : null}
      {receipt.hasNextPage ? (
        <Group className="screen">
          <Button variant="default" onClick={() => void receipt.fetchNextPage()} loading={receipt.isFetchingNextPage}>
            More requests
          </Button>
        </Group>
      ) : null}
    </Page>
  );
}

function Sheet({ of: { entry, tenantName }, of, requests }: { of: Receipt; requests: Receipt['requests'] }) {
  const { currency } = usePerson();
  return (
    <>
      <Facts
        rows={[
          ['Number', <span className="secret">{entry.id}</span>],
          ['Tenant', <span className="secret">{`${tenantName}, ${entry.tenantId}`}</span>],
          ['Type', TYPES[entry.type]],
          ['Booked (UTC)', <Time at={entry.createdAt} />],
          ...(entry.type === 'usage' ? [['Month (UTC)', entry.period] as const] : []),
          ['Source', entry.source],
          ['Reference', <span className="secret">{entry.ref}</span>],
          ['Amount', <Money cents={entry.amountCents} currency={currency} />],
          ['Balance after', <Money cents={entry.balanceAfterCents} currency={currency} />],
        ]}
      />
      {entry.type === 'usage' ? <Debited of={of} requests={requests} /> : null}
    </>
  );
}

/** The requests of an entry, and how their cost makes its amount. */
function Debited({
  of: { entry, carriedInNanos, carriedOutNanos },
  requests,
}: {
  of: Receipt;
  requests: Receipt['requests'];
}) {
  const { currency } = usePerson();
  const { id } = useTenant();
  const [carriedIn, carriedOut] = [BigInt(carriedInNanos), BigInt(carriedOutNanos)];
  const debited = BigInt(-entry.amountCents) * NANOS_PER_CENT;
  return (
    <>
      <DataTable
        label="Requests"
        head={['Ended (UTC)', 'Request', '#Cost']}
        rows={requests.map((request) => [
          <Time at={request.endedAt} />,
          <Anchor
            component={Link}
            to="/t/$tenantId/requests"
            params={{ tenantId: id } as never}
            search={{ request: request.id } as never}
            underline="always"
            size="sm"
          >
            {request.id}
          </Anchor>,
          <Money nanos={request.costNanos} currency={currency} />,
        ])}
      />
      <Sums
        of={[
          ['All requests', <Money nanos={debited + carriedOut - carriedIn} currency={currency} />],
          ['Carried in, less than a cent', <Money nanos={carriedIn} currency={currency} />],
          ['Carried on to the next debit', <Money nanos={-carriedOut} currency={currency} />],
          ['Paid from credit', <Money nanos={debited} currency={currency} />],
        ]}
      />
    </>
  );
}
