import { Anchor, Card, Code, SimpleGrid, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Overview, UsageTotals } from '../../../src/api/answers';
import { burnOf, lastingOf } from '../usage/burn';
import { Figure } from '../parts/figure';
import { count, Money } from '../parts/format';
import { useLive } from '../backend/live';
import { usePerson, useTenant } from '../backend/me';
import { NoRequests } from '../playground/no-requests';
import { Answer, DataTable, Page } from '../parts/page';
import { overviewQuestion } from '../backend/questions';
import { remedyOf } from '../usage/remedies';
import { requestsOf } from '../usage/requests-of';
import { UsageChart } from '../usage/usage-chart';

const DAYS = 30;

const requestsOfDay = (point: { at: string; name: string | null }) => requestsOf(point, { step: 'day', by: 'model' });

/** Credit, and the last 30 days beside the 30 days before. */
export function OverviewPage() {
  const { id, path } = useTenant();
  const { currency } = usePerson();
  const overview = useLive({ ...overviewQuestion(id), stream: path('live', 'overview') });
  return (
    <Page title="Overview">
      <Answer of={overview}>
        {(data) => (
          <>
            <Numbers data={data} currency={currency} />
            {data.usage.totals.requests === 0 ? (
              <NoRequests text="There were no requests in the last 30 days." />
            ) : (
              <Card withBorder>
                <Text fw={600}>Spend by day and model ({currency})</Text>
                <UsageChart
                  usage={data.usage}
                  step="day"
                  nameOf={(model) => model ?? 'others'}
                  requestsOf={requestsOfDay}
                />
                <Anchor component={Link} to="/t/$tenantId/usage" params={{ tenantId: id } as never} underline="always">
                  These days in a table, each with its requests
                </Anchor>
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
  const { balanceCents, unpostedNanos, admission } = data.credit;
  const notPosted = BigInt(unpostedNanos) + BigInt(admission?.settledNanos ?? 0);
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <Figure
          title="Balance"
          about={
            <>
              In the ledger. Of it, <Money nanos={notPosted} currency={currency} /> is used and not posted yet.
            </>
          }
        >
          <Money cents={balanceCents} currency={currency} />
        </Figure>
        <Figure title="Held" about="Reserved by requests that run now.">
          {admission === null ? 'not known now' : <Money nanos={admission.heldNanos} currency={currency} />}
        </Figure>
        <Figure title="Spendable" about="What new requests can still cost.">
          {admission === null ? 'not known now' : <Money nanos={admission.availableNanos} currency={currency} />}
        </Figure>
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
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
        <Burn data={data} currency={currency} />
      </SimpleGrid>
    </>
  );
}

/** What a day costs, and how long the credit lasts at that rate. */
function Burn({ data: { usage, before, credit }, currency }: { data: Overview; currency: string }) {
  const { perDay, days } = burnOf({ usage, before }, Date.now());
  const left = credit.admission === null ? null : BigInt(credit.admission.availableNanos);
  return (
    <Figure title={`Burn rate, ${days === 1 ? 'today' : `${days} days`}`} about={lastingOf({ left, perDay })}>
      <Money nanos={perDay} currency={currency} />
    </Figure>
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
        head={['Error', '#Requests', 'What to do']}
        rows={refusals.map(({ code, requests }) => [<Code>{code}</Code>, count(requests), remedyOf(code)])}
      />
    </Card>
  );
}

function Before({ now, before }: { now: number; before: number }) {
  if (before === 0) return 'Nothing in the previous 30 days.';
  const percent = Math.round(((now - before) / before) * 100);
  return `${percent >= 0 ? '+' : '−'}${Math.abs(percent)} % against the 30 days before.`;
}
