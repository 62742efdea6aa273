import { Badge, Button, Group, Loader, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { ReconcileRun } from '../../../src/api/answers';
import { api, pathOf } from '../backend/api';
import { Failure } from '../parts/failure';
import { count, Money, Time } from '../parts/format';
import { usePerson } from '../backend/me';
import { DataTable } from '../parts/page';
import { newestRun } from './newest-run';

const POLL_MS = 1_000;

/** Proves from the stores that events, charges, entries and balances agree, and shows the newest run. */
export function Reconcile({ latest }: { latest: ReconcileRun | null }) {
  const start = useMutation({ mutationFn: () => api.post<{ id: string }>('/operator/reconcile') });
  const own = useQuery({
    queryKey: ['operator', 'reconcile', start.data?.id],
    queryFn: () => api.get<ReconcileRun>(pathOf('operator', 'reconcile', start.data!.id)),
    enabled: start.data !== undefined,
    refetchInterval: ({ state }) => (state.data === undefined || state.data.state === 'running' ? POLL_MS : false),
  });
  const run = newestRun(own.data, latest);
  return (
    <Stack gap="sm">
      <Group justify="space-between">
        <Title order={2} size="h4">
          Reconciliation
        </Title>
        <Button onClick={() => start.mutate()} loading={start.isPending} disabled={run?.state === 'running'}>
          Reconcile now
        </Button>
      </Group>
      <Text size="sm">
        Reconcile compares events, charges, ledger entries, invoices and balances. It changes nothing.
      </Text>
      <Failure error={start.error ?? own.error} />
      {run === null ? <Text size="sm">Reconcile has not run yet.</Text> : <Run of={run} />}
    </Stack>
  );
}

function Run({ of: run }: { of: ReconcileRun }) {
  if (run.state === 'running')
    return (
      <Group gap="xs" role="status">
        <Loader size="xs" aria-label="It runs" />
        <Text className="figures">
          It runs since <Time at={run.startedAt} />: {count(run.events)} events, {count(run.tenants)} tenants,{' '}
          {count(run.differenceCount)} differences so far.
        </Text>
      </Group>
    );
  if (run.state === 'failed') return <Text role="status">It failed: {run.reason}</Text>;
  return <Report of={run} />;
}

const differencesOf = ({ differenceCount }: { differenceCount: number }): string =>
  differenceCount === 1 ? '1 difference' : `${count(differenceCount)} differences`;

function Report({ of: { report } }: { of: Extract<ReconcileRun, { state: 'done' }> }) {
  const { currency } = usePerson();
  return (
    <>
      <Group gap="xs" role="status">
        <Badge variant="outline" color={report.ok ? 'green' : 'red'}>
          {report.ok ? 'the books agree' : `${report.truncated ? 'at least ' : ''}${differencesOf(report)}`}
        </Badge>
        <Text>
          at <Time at={report.checkedAt} />
        </Text>
      </Group>
      <DataTable
        label="Proven"
        head={['What', '#How much']}
        rows={[
          ['Tenants', count(report.tenants)],
          ['Events', count(report.events)],
          ['Cost of the events', <Money nanos={report.eventsNanos} currency={currency} />],
          ['Charges', <Money nanos={report.chargesNanos} currency={currency} />],
          ['Debited', <Money nanos={report.debitsNanos} currency={currency} />],
          ['Carried, below a cent', <Money nanos={report.carriedNanos} currency={currency} />],
          ['Holds of running requests', count(report.pendingHolds)],
          ['Holds on their way to the books', count(report.settledHolds)],
        ]}
      />
      {report.truncated ? <Text>Only the first of them are listed: {count(report.differences.length)}.</Text> : null}
      {report.differences.length === 0 ? null : (
        <DataTable
          label="Differences"
          head={['Check', 'Tenant', '#Expected', '#Actual', 'Concerned']}
          rows={report.differences.map((one) => [
            one.check,
            one.tenantId,
            one.expected,
            one.actual,
            one.ids.join(', '),
          ])}
        />
      )}
    </>
  );
}
