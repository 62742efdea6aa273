import { Button, Code, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { ReconcileRun } from '@tollgate/contracts';
import { api, pathOf } from '../api';
import { Failure } from '../failure';
import { Page } from '../page';

const POLL_MS = 1_000;

/** Operator → Books: proves from the stores that events, charges, entries and balances agree. */
export function OperatorBooksPage() {
  const start = useMutation({ mutationFn: () => api.post<{ id: string }>('/operator/reconcile') });
  const run = useQuery({
    queryKey: ['operator', 'reconcile', start.data?.id],
    queryFn: () => api.get<ReconcileRun>(pathOf('operator', 'reconcile', start.data!.id)),
    enabled: start.data !== undefined,
    refetchInterval: ({ state }) => (state.data?.state === 'running' ? POLL_MS : false),
  });
  return (
    <Page
      title="Books"
      about="Reconcile compares events, charges, ledger entries and balances. It changes nothing."
      action={
        <Button onClick={() => start.mutate()} loading={start.isPending || run.data?.state === 'running'}>
          Reconcile now
        </Button>
      }
    >
      <Failure error={start.error ?? run.error} />
      {run.data ? (
        <>
          <Text role="status">The run is {run.data.state}.</Text>
          <Code block>{JSON.stringify(run.data, null, 2)}</Code>
        </>
      ) : (
        <Text>No run was started on this page yet.</Text>
      )}
    </Page>
  );
}
