import { Card, Code, Group, SimpleGrid, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { Overview, UsageTotals } from '../../../src/api/answers';
import { api } from '../api';
import { count, Money } from '../format';
import { usePerson, useTenant } from '../me';
import { Answer, DataTable, Empty, Page } from '../page';
import { remedyOf } from '../remedies';
import { UsageChart } from '../usage-chart';

/** The numbers on screen are at most this old while the page is open. */
const REFRESH_MS = 2_000;
const NANOS_PER_CENT = 10_000_000n;
const DAYS = 30;

/** Credit, and the last 30 days beside the 30 days before. */
export function OverviewPage() {
  const { id, path } = useTenant();
  const { currency, inferenceUrl } = usePerson();
  const overview = useQuery({
    queryKey: ['overview', id],
    queryFn: () => api.get<Overview>(path('overview')),
    refetchInterval: REFRESH_MS,
  });
  return (
    <Page title="Overview">
      <Answer of={overview}>
        {(data) => (
          <>
            <Numbers data={data} currency={currency} />
            {data.usage.totals.requests === 0 ? (
              <Empty
                text="There was no request in the last 30 days. This one lists the models:"
                command={`curl ${inferenceUrl}/models -H "Authorization: Bearer $TOLLGATE_KEY"`}
              />
            ) : (
              <Card withBorder>
                <Text fw={600}>Spend by day and model ({currency})</Text>
                <UsageChart usage={data.usage} step="day" nameOf={(model) => model} />
              </Card>
            )}
            <Refusals refusals={data.refusals} />
          </>
        )}
      </Answer>
    </Page>
  );
}

function Numbers({ data, currency }: { data: Overview; currency: string }) {
  const { before } = data;
  const { totals } = data.usage;
  const balanceNanos = BigInt(data.balanceCents) * NANOS_PER_CENT;
  const notPosted = BigInt(data.carriedNanos);
  const spendable = data.spendableNanos === null ? null : BigInt(data.spendableNanos);
  const held = spendable === null ? null : balanceNanos - notPosted - spendable;
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <Figure title="Balance" about="What the ledger has: money in, less what is posted.">
          <Money cents={data.balanceCents} currency={currency} />
        </Figure>
        <Figure title="Held" about="Reserved by requests that run now, and usage on its way to the books.">
          {held === null ? 'not known now' : <Money nanos={held < 0n ? 0n : held} currency={currency} />}
        </Figure>
        <Figure title="Spendable" about="What new requests can still cost.">
          {spendable === null ? 'not known now' : <Money nanos={spendable} currency={currency} />}
        </Figure>
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <Figure
          title={`Spend, ${DAYS} days`}
          about={<Before now={Number(totals.costNanos)} before={Number(before.costNanos)} />}
        >
          <Money nanos={totals.costNanos} currency={currency} />
        </Figure>
        <Figure title={`Requests, ${DAYS} days`} about={<Before now={totals.requests} before={before.requests} />}>
          {count(totals.requests)}
        </Figure>
        <Figure title={`Tokens, ${DAYS} days`} about={<Before now={tokensOf(totals)} before={tokensOf(before)} />}>
          {count(tokensOf(totals))}
        </Figure>
      </SimpleGrid>
    </>
  );
}

const tokensOf = ({ promptTokens, completionTokens }: UsageTotals): number => promptTokens + completionTokens;

/** Errors that programs got, and what to do about each. */
function Refusals({ refusals }: Pick<Overview, 'refusals'>) {
  if (refusals.length === 0) return null;
  return (
    <Card withBorder>
      <Text fw={600}>Requests that got an error, {DAYS} days</Text>
      <DataTable
        label="Errors"
        head={['Error', 'Requests', 'What to do']}
        rows={refusals.map(({ code, requests }) => [<Code>{code}</Code>, count(requests), remedyOf(code)])}
      />
    </Card>
  );
}

function Figure({ title, about, children }: { title: string; about: ReactNode; children: ReactNode }) {
  return (
    <Card withBorder>
      <Group justify="space-between">
        <Text size="sm" fw={600}>
          {title}
        </Text>
      </Group>
      <Text fz={26} fw={700} className="figures" data-figure={title}>
        {children}
      </Text>
      <Text size="sm">{about}</Text>
    </Card>
  );
}

function Before({ now, before }: { now: number; before: number }) {
  if (before === 0) return 'Nothing in the 30 days before.';
  const percent = Math.round(((now - before) / before) * 100);
  return `${percent >= 0 ? '+' : '−'}${Math.abs(percent)} % against the 30 days before.`;
}
