import { Badge, Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import type { InvoiceSheet } from '../../../src/api/answers';
import { api } from '../backend/api';
import { count, Money, Time } from '../parts/format';
import { usePerson, useTenant } from '../backend/me';
import { Answer, DataTable, Page, PrintButton, Sums } from '../parts/page';

const NANOS_PER_CENT = 10_000_000n;

/** An invoice for the screen and for paper: browsers print it or save it as PDF. */
export function InvoicePage() {
  const { number = '' } = useParams({ strict: false });
  const { id, path } = useTenant();
  const invoice = useQuery({
    queryKey: ['invoice', id, number],
    queryFn: () => api.get<InvoiceSheet>(path('invoices', number)),
  });
  return (
    <Page title={`Invoice ${number}`} action={invoice.data ? <PrintButton /> : null}>
      <Answer of={invoice}>{(sheet) => <Sheet of={sheet} />}</Answer>
    </Page>
  );
}

function Sheet({ of: { invoice, tenantName, lines } }: { of: InvoiceSheet }) {
  const { currency } = usePerson();
  const used = lines.reduce((sum, { costNanos }) => sum + BigInt(costNanos), 0n);
  const total = BigInt(invoice.amountCents) * NANOS_PER_CENT;
  return (
    <>
      <Group gap="xs">
        <Text fw={600}>{tenantName}</Text>
        <Text>{invoice.tenantId}</Text>
        <Badge variant="outline" color={invoice.status === 'paid' ? 'green' : 'gray'}>
          {invoice.status}
        </Badge>
      </Group>
      <Text>
        Month {invoice.period} (UTC), issued <Time at={invoice.createdAt} />
        {invoice.voidedAt === null ? null : (
          <>
            , void since <Time at={invoice.voidedAt} />
          </>
        )}
      </Text>
      <DataTable
        label="Usage of the month"
        head={['Model', '#Requests', '#Input tokens', '#Of which cached', '#Output tokens', '#Cost']}
        rows={lines.map((line) => [
          line.name ?? 'other models',
          <span className="figures">{count(line.requests)}</span>,
          <span className="figures">{count(line.promptTokens)}</span>,
          <span className="figures">{count(line.cachedTokens)}</span>,
          <span className="figures">{count(line.completionTokens)}</span>,
          <Money nanos={line.costNanos} currency={currency} />,
        ])}
      />
      <Sums
        of={[
          ['Usage', <Money nanos={used} currency={currency} />],
          ['Carried between months, and late charges', <Money nanos={total - used} currency={currency} />],
          ['Paid from credit', <Money nanos={total} currency={currency} />],
        ]}
      />
    </>
  );
}
