import { Anchor, Badge, Button, Group, Modal, Select, TextInput } from '@mantine/core';
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { TenantList, TenantRow } from '../../../src/api/answers';
import { api, pathOf, queryOf } from '../backend/api';
import { ConfirmButton } from '../parts/confirm';
import { ChangeForm } from '../parts/change-form';
import { Failure } from '../parts/failure';
import { SearchField } from '../parts/filter';
import { Money } from '../parts/format';
import { usePerson } from '../backend/me';
import { DataTable, Empty, Loading, Page } from '../parts/page';
import { BookCredit } from './operator-credit';

const setStatusOf = ({ id }: TenantRow, status: 'active' | 'suspended') =>
  api.patch<TenantRow>(pathOf('operator', 'tenants', id), { status });
/** Operator → Tenants. */
export function OperatorTenantsPage() {
  const queries = useQueryClient();
  const { currency } = usePerson();
  const [open, setOpen] = useState<'create' | TenantRow | null>(null);
  const [wanted, setWanted] = useState('');
  const tenants = useInfiniteQuery({
    queryKey: ['operator', 'tenants', wanted],
    queryFn: ({ pageParam }) =>
      api.get<TenantList>(`/operator/tenants${queryOf({ after: pageParam, search: wanted })}`),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
  });
  const refresh = () => queries.invalidateQueries({ queryKey: ['operator', 'tenants'] });
  const resume = useMutation({
    mutationFn: (tenant: TenantRow) => setStatusOf(tenant, 'active'),
    onSuccess: refresh,
  });
  const rows = tenants.data?.pages.flatMap(({ data }) => data) ?? [];
  return (
    <Page title="Tenants" action={<Button onClick={() => setOpen('create')}>Create a tenant</Button>}>
      {open === 'create' ? <CreateTenant onClose={() => setOpen(null)} onCreated={refresh} /> : null}
      {open !== null && open !== 'create' ? (
        <BookCredit tenant={open} onClose={() => setOpen(null)} onBooked={refresh} />
      ) : null}
      <SearchField label="Search by name or id" onSearch={setWanted} />
      <Failure error={tenants.error ?? resume.error} />
      {tenants.isPending ? <Loading /> : null}
      {tenants.data === undefined ? null : rows.length === 0 ? (
        <Empty text="There is no such tenant." command="npx tollgate tenant create acme" />
      ) : (
        <DataTable
          label="Tenants"
          ids={rows.map(({ id }) => id)}
          head={['Name', '#Balance', 'Status', 'Plan', '#Spend this month', 'Id', 'Actions']}
          rows={rows.map((tenant) => [
            <Anchor
              component={Link}
              to="/t/$tenantId/overview"
              params={{ tenantId: tenant.id } as never}
              underline="always"
            >
              {tenant.name}
            </Anchor>,
            <Money cents={tenant.balanceCents} currency={currency} />,
            <Badge variant="outline" color={tenant.status === 'active' ? 'green' : 'gray'}>
              {tenant.status}
            </Badge>,
            tenant.plan,
            <Money cents={tenant.debitedCents} currency={currency} />,
            tenant.id,
            <Group gap="xs" wrap="nowrap">
              <Button
                size="xs"
                variant="default"
                aria-label={`Credit of ${tenant.name}`}
                onClick={() => setOpen(tenant)}
              >
                Credit
              </Button>
              {tenant.status === 'active' ? (
                <ConfirmButton
                  label={`Suspend ${tenant.name}`}
                  title={`Suspend the tenant ${tenant.name}`}
                  text="All its requests are refused within a second, until an operator resumes it."
                  action="Suspend"
                  typed={tenant.name}
                  work={() => setStatusOf(tenant, 'suspended')}
                  onDone={refresh}
                />
              ) : (
                <Button
                  size="xs"
                  variant="default"
                  aria-label={`Resume ${tenant.name}`}
                  disabled={tenant.status === 'closed'}
                  onClick={() => resume.mutate(tenant)}
                >
                  Resume
                </Button>
              )}
            </Group>,
          ])}
        />
      )}
      {tenants.hasNextPage ? (
        <Group>
          <Button variant="default" onClick={() => void tenants.fetchNextPage()} loading={tenants.isFetchingNextPage}>
            Older tenants
          </Button>
        </Group>
      ) : null}
    </Page>
  );
}

function CreateTenant({ onClose, onCreated }: { onClose: () => void; onCreated: () => Promise<void> }) {
  const [name, setName] = useState('');
  const [plan, setPlan] = useState<string | null>(null);
  const plans = useQuery({
    queryKey: ['operator', 'plans'],
    queryFn: () => api.get<{ data: string[] }>('/operator/plans'),
  });
  const create = useMutation({
    mutationFn: () => api.post<TenantRow>('/operator/tenants', { name, ...(plan && { plan }) }),
    onSuccess: async () => {
      await onCreated();
      onClose();
    },
  });
  return (
    <Modal opened onClose={onClose} title="Create a tenant">
      <ChangeForm change={create} action="Create">
        <TextInput
          label="Name"
          required
          maxLength={100}
          data-autofocus
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <Select
          label="Plan"
          data={plans.data?.data ?? []}
          value={plan ?? plans.data?.data[0] ?? null}
          onChange={setPlan}
          allowDeselect={false}
        />
      </ChangeForm>
    </Modal>
  );
}
