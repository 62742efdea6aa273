import { Button, Card, Group, SegmentedControl } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { KeyList, Usage } from '../../../src/api/answers';
import { api, queryOf } from '../api';
import { downloadCsv } from '../csv';
import { count, Money } from '../format';
import { usePerson, useTenant } from '../me';
import { Answer, DataTable, Empty, Page } from '../page';
import { UsageChart } from '../usage-chart';

const DAY_MS = 24 * 60 * 60_000;
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

/** Usage of a range by model or key. The choice is in the URL. */
export function UsagePage() {
  const { id, path } = useTenant();
  const { currency, inferenceUrl } = usePerson();
  const { days = '30', by = 'model' } = useSearch({ strict: false });
  const navigate = useNavigate();
  const step = days === '1' ? ('hour' as const) : ('day' as const);
  const series = by === 'model' || by === 'key' ? by : undefined;
  const usage = useQuery({
    queryKey: ['usage', id, days, by],
    queryFn: () => api.get<Usage>(path('usage') + rangeOf(Number(days), step, series)),
  });
  const keys = useQuery({ queryKey: ['keys', id], queryFn: () => api.get<KeyList>(path('keys')) });
  const nameOf = (name: string | null) => {
    if (name === null) return series === undefined ? '' : 'others';
    return (series === 'key' && keys.data?.data.find((key) => key.id === name)?.name) || name;
  };
  const choose = (next: { days: string; by: string }) =>
    void navigate({ to: '/t/$tenantId/usage', params: { tenantId: id }, search: next });
  return (
    <Page title="Usage">
      <Group>
        <SegmentedControl
          aria-label="Range"
          data={RANGES}
          value={days}
          onChange={(value) => choose({ days: value, by })}
        />
        <SegmentedControl
          aria-label="Group by"
          data={GROUPS}
          value={by}
          onChange={(value) => choose({ days, by: value })}
        />
      </Group>
      <Answer of={usage}>
        {(data) => {
          const { points, totals } = data;
          if (totals.requests === 0)
            return (
              <Empty
                text="There was no request in this range. This one lists the models:"
                command={`curl ${inferenceUrl}/models -H "Authorization: Bearer $TOLLGATE_KEY"`}
              />
            );
          const head = [
            `${step === 'day' ? 'Day' : 'Hour'} (UTC)`,
            series ?? 'Group',
            'Requests',
            'Input',
            'Output',
            'Cost',
          ];
          return (
            <>
              <Card withBorder>
                <UsageChart usage={data} step={step} nameOf={nameOf} />
              </Card>
              <Group justify="flex-end">
                <Button
                  variant="default"
                  size="xs"
                  onClick={() =>
                    downloadCsv(
                      'usage.csv',
                      points.map((point) => ({ ...point, name: nameOf(point.name) })),
                    )
                  }
                >
                  Download CSV
                </Button>
              </Group>
              <DataTable
                label="Usage"
                head={head}
                rows={[
                  ...points.map((point) => [
                    point.at.slice(0, step === 'day' ? 10 : 16).replace('T', ' '),
                    nameOf(point.name),
                    count(point.requests),
                    count(point.promptTokens),
                    count(point.completionTokens),
                    <Money nanos={point.costNanos} currency={currency} />,
                  ]),
                  [
                    <b>Total</b>,
                    '',
                    count(totals.requests),
                    count(totals.promptTokens),
                    count(totals.completionTokens),
                    <Money nanos={totals.costNanos} currency={currency} />,
                  ],
                ]}
              />
            </>
          );
        }}
      </Answer>
    </Page>
  );
}

function rangeOf(days: number, step: 'day' | 'hour', by: 'model' | 'key' | undefined): string {
  const now = Date.now();
  const from = days === 1 ? now - DAY_MS : Math.floor(now / DAY_MS) * DAY_MS - (days - 1) * DAY_MS;
  return queryOf({ from: new Date(from).toISOString(), to: new Date(now).toISOString(), step, by });
}
