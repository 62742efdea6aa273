import { Button, Card, Group, SegmentedControl, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Usage } from '../../../src/api/answers';
import { downloadCsv } from '../parts/download';
import { KeyFilter, ModelFilter } from '../parts/filter';
import { count, localTime, Money } from '../parts/format';
import { usePerson, useTenant } from '../backend/me';
import { NoRequests } from '../playground/no-requests';
import { Answer, DataTable, Page } from '../parts/page';
import { usageChoice, usageQuestion, type UsageSearch } from '../backend/questions';
import { RangeFields } from '../usage/range-fields';
import { RequestsLink, RequestsLinks } from '../usage/requests-links';
import { requestsOf } from '../usage/requests-of';
import { UsageChart } from '../usage/usage-chart';
import { usageRows } from '../usage/usage-rows';

/** What the backend answers at once. */
const MAX_DAYS = 400;
/** The books of 90 days are the most that a page reads, so it asks less often than others. */
const ASK_EVERY_MS = 10_000;
/** More rows at once delay the page. */
const ROWS = 300;
const RANGES = [
  { value: '1', label: '24 hours' },
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
];
const GROUPS = [
  { value: 'model', label: 'Model' },
  { value: 'key', label: 'Key' },
  { value: 'none', label: 'Total' },
];
const STEPS = [
  { value: 'hour', label: 'Hours' },
  { value: 'day', label: 'Days' },
];

const cutText = (named: number, series: string) =>
  `Table and file have the ${named} ${series}s with the highest cost, and the rest as others. ` +
  'A shorter range, or days instead of hours, has more of them.';

/** Usage of a range by model or key. The choice is in the URL, and each number leads to its requests. */
export function UsagePage() {
  const { id } = useTenant();
  const { currency } = usePerson();
  const search: UsageSearch = useSearch({ strict: false });
  const { days, from, to, by, step, series, mayBeHours, model, keyId } = usageChoice(search);
  const navigate = useNavigate();
  const [rows, setRows] = useState(ROWS);
  const usage = useQuery({
    ...usageQuestion(id, search),
    // Made again each time, because a range until now goes on.
    queryFn: () => usageQuestion(id, search).queryFn(),
    refetchInterval: ASK_EVERY_MS,
  });
  const nameOf = (name: string | null) => {
    if (name === null) return series === undefined ? '' : 'others';
    return (series === 'key' && usage.data?.keyNames[name]) || name;
  };
  const choose = (next: UsageSearch) =>
    void navigate({
      to: '/t/$tenantId/usage',
      params: { tenantId: id },
      search: { ...search, ...(days !== '' && { days }), by, ...next } as never,
    });
  const requestsOfPoint = (point: { at: string; name: string | null }) =>
    requestsOf(point, { step, by: series, model, keyId });
  const isOthers = ({ name }: Usage['points'][number]) => name === null && series !== undefined;
  return (
    <Page title="Usage">
      <Group>
        <SegmentedControl
          aria-label="Range"
          data={RANGES}
          value={days}
          onChange={(value) => choose({ days: value, from: undefined, to: undefined })}
        />
        <RangeFields value={{ from, to }} onChange={choose} maxDays={MAX_DAYS} />
        <SegmentedControl aria-label="Group by" data={GROUPS} value={by} onChange={(value) => choose({ by: value })} />
        {mayBeHours ? (
          <SegmentedControl aria-label="Step" data={STEPS} value={step} onChange={(value) => choose({ step: value })} />
        ) : null}
        <ModelFilter value={model} onChange={(value) => choose({ model: value })} />
        <KeyFilter
          value={keyId}
          name={keyId && usage.data?.keyNames[keyId]}
          onChange={(value) => choose({ keyId: value })}
        />
      </Group>
      <Answer of={usage}>
        {(data) => {
          const { points, totals, names } = data;
          const isCut = series !== undefined && points.some(({ name }) => name === null);
          if (totals.requests === 0) return <NoRequests text="There were no such requests in this range." />;
          const head = [
            `${step === 'day' ? 'Day' : 'Hour'} (UTC)`,
            series === undefined ? 'Group' : series === 'model' ? 'Model' : 'Key',
            '#Requests',
            '#Input',
            '#Output',
            '#Cost',
          ];
          return (
            <>
              <Card withBorder>
                <UsageChart
                  usage={data}
                  step={step}
                  nameOf={(name) => nameOf(name) || 'spend'}
                  requestsOf={requestsOfPoint}
                />
              </Card>
              <Group justify="space-between">
                <Text size="sm">{isCut ? cutText(names.length, series) : ''}</Text>
                <Button
                  variant="default"
                  size="xs"
                  onClick={() => downloadCsv('usage.csv', usageRows(points, series, nameOf))}
                >
                  Download CSV
                </Button>
              </Group>
              <RequestsLinks>
                <DataTable
                  label="Usage"
                  head={head}
                  rows={[
                    ...points.slice(0, rows).map((point) => [
                      <span className="figures" title={localTime(point.at)}>
                        {point.at.slice(0, step === 'day' ? 10 : 16).replace('T', ' ')}
                      </span>,
                      nameOf(point.name),
                      <RequestsLink
                        tenantId={id}
                        requests={point.requests}
                        search={requestsOfPoint(point)}
                        title={localTime(point.at)}
                        {...(isOthers(point) && { label: `${point.requests} requests: show all of this time` })}
                      />,
                      count(point.promptTokens),
                      count(point.completionTokens),
                      <Money nanos={point.costNanos} currency={currency} />,
                    ]),
                    [
                      <b>Total</b>,
                      '',
                      <RequestsLink
                        tenantId={id}
                        requests={totals.requests}
                        search={{ from: data.from, to: data.to, model, keyId }}
                      />,
                      count(totals.promptTokens),
                      count(totals.completionTokens),
                      <Money nanos={totals.costNanos} currency={currency} />,
                    ],
                  ]}
                />
              </RequestsLinks>
              {points.length > rows ? (
                <Button variant="default" onClick={() => setRows(rows + ROWS)}>
                  More rows: {count(points.length - rows)}
                </Button>
              ) : null}
            </>
          );
        }}
      </Answer>
    </Page>
  );
}
