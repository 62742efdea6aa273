import {
  Badge,
  Button,
  Group,
  Modal,
  NumberInput,
  Progress,
  Select,
  Stack,
  Text,
  TextInput,
  Title,
} from '@mantine/core';
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { BudgetList, BudgetRow } from '../../../src/api/answers';
import { api, queryOf } from '../backend/api';
import { ChangeForm } from '../parts/change-form';
import { Money, Time } from '../parts/format';
import { useKeyChoice } from '../backend/key-choice';
import { askAllEveryMs } from '../backend/live-lists';
import { usePerson, useTenant } from '../backend/me';
import { spentOf } from '../keys/budget-share';
import { More } from '../parts/more';
import { DataTable, Loading, Page, Unanswered } from '../parts/page';

const CENTS = 100;

/** Settings → Budgets: what the tenant and its keys may spend in a month. */
export function BudgetsPage() {
  const { id, may, path } = useTenant();
  const queries = useQueryClient();
  const [open, setOpen] = useState<{ row: BudgetRow; title: string } | null>(null);
  const budgets = useInfiniteQuery({
    queryKey: ['budgets', id],
    queryFn: ({ pageParam }) => api.get<BudgetList>(path('budgets') + queryOf({ after: pageParam })),
    initialPageParam: '',
    getNextPageParam: ({ keys }) => keys.nextCursor,
    refetchInterval: askAllEveryMs,
  });
  const choice = useKeyChoice();
  const [first] = budgets.data?.pages ?? [];
  const keys = budgets.data?.pages.flatMap((page) => page.keys.data) ?? [];
  const others = choice.keys.filter((key) => key.status === 'active' && !keys.some(({ keyId }) => keyId === key.id));
  const change = (row: BudgetRow, title: string) =>
    may('budgets.write') ? (
      <Button size="xs" variant="default" aria-label={`Change: ${title}`} onClick={() => setOpen({ row, title })}>
        Change
      </Button>
    ) : null;
  return (
    <Page title="Budgets" about="A request that could exceed the budget of its month is refused. Months are in UTC.">
      {open ? (
        <ChangeBudget
          of={open.row}
          title={open.title}
          onClose={() => setOpen(null)}
          onChanged={() => queries.invalidateQueries({ queryKey: ['budgets', id] })}
        />
      ) : null}
      <Unanswered of={budgets} />
      {budgets.isPending ? <Loading /> : null}
      {first ? (
        <>
          <Title order={2} size="h4">
            All keys together
          </Title>
          <Budget of={first.tenant} />
          <Group>{change(first.tenant, 'Budget of all keys together')}</Group>
          <Title order={2} size="h4">
            Keys with their own budget
          </Title>
          {may('budgets.write') ? (
            <Select
              label="Give another key a budget"
              placeholder="Key"
              maw={300}
              {...choice.field}
              data={others.map((key) => ({ value: key.id, label: `${key.name} …${key.last4}` }))}
              value={null}
              onChange={(keyId) => {
                const key = others.find((one) => one.id === keyId);
                if (key) setOpen({ row: withoutBudget(first.tenant, key.id), title: `Budget of ${key.name}` });
              }}
            />
          ) : null}
          {keys.length === 0 ? (
            <Text size="sm">No key has its own budget. Its profile may still have one.</Text>
          ) : (
            <DataTable
              label="Budgets of keys"
              ids={keys.map((row) => row.keyId!)}
              head={['Key', 'Budget and use', 'Actions']}
              rows={keys.map((row) => [
                row.keyName ?? row.keyId,
                <Budget of={row} />,
                change(row, `Budget of ${row.keyName ?? row.keyId}`),
              ])}
            />
          )}
        </>
      ) : null}
      <More label="More keys" of={budgets} />
    </Page>
  );
}

/** The row of a key whose only budget comes from its profile. */
const withoutBudget = ({ period, thresholdsPercent }: BudgetRow, keyId: string): BudgetRow => ({
  ...{ keyId, period, thresholdsPercent, budgetCents: null, isDefault: true },
  ...{ hasOwnThresholds: false, spentNanos: '0', events: [] },
});

/** What is spent of a budget, its thresholds, and those that were reached. */
function Budget({ of }: { of: BudgetRow }) {
  const { currency } = usePerson();
  const bar = of.budgetCents === null ? null : spentOf(BigInt(of.spentNanos), of.budgetCents);
  return (
    <Stack gap={4}>
      <Text size="sm">
        <Money nanos={of.spentNanos} currency={currency} /> spent in {of.period}
        {of.budgetCents === null ? (
          ', without a budget'
        ) : (
          <>
            {' '}
            of <Money cents={of.budgetCents} currency={currency} />
          </>
        )}
        {of.isDefault && of.budgetCents !== null ? ' (of the plan)' : ''}
      </Text>
      {bar === null ? null : <Progress value={Math.min(bar.percent, 100)} aria-label={bar.label} />}
      <Group gap="xs">
        {(bar === null ? [] : of.thresholdsPercent).map((threshold) => {
          const event = of.events.find(({ thresholdPercent }) => thresholdPercent === threshold);
          return (
            <Badge key={threshold} variant="outline" color={event ? 'orange' : 'gray'}>
              {threshold} %{event ? ' reached' : ''}
            </Badge>
          );
        })}
        {of.events.length > 0 ? (
          <Text size="sm">
            last at <Time at={of.events.at(-1)!.at} />
          </Text>
        ) : null}
      </Group>
    </Stack>
  );
}

/** Null: the thresholds of the configuration. */
function percentsOf(text: string): number[] | null {
  const parts = text.split(/[\s,%]+/).filter((part) => part !== '');
  return parts.length === 0 ? null : parts.map(Number);
}

type Kind = 'amount' | 'default' | 'none';

function ChangeBudget(props: { of: BudgetRow; title: string; onClose: () => void; onChanged: () => Promise<void> }) {
  const { of, title, onClose, onChanged } = props;
  const { path } = useTenant();
  const { currency } = usePerson();
  const [kind, setKind] = useState<Kind>(of.isDefault ? 'default' : of.budgetCents === null ? 'none' : 'amount');
  const [amount, setAmount] = useState<string | number>(of.budgetCents === null ? '' : of.budgetCents / CENTS);
  const [thresholds, setThresholds] = useState(of.hasOwnThresholds ? of.thresholdsPercent.join(', ') : '');
  const target = of.keyId === null ? path('budget') : path('keys', of.keyId, 'budget');
  const cents = Math.round(Number(amount) * CENTS);
  const budgetCents = kind === 'default' ? 'default' : kind === 'none' ? null : cents;
  // The field may have a lone sign. JSON makes null of a NaN, which is no budget.
  const isMissing = kind === 'amount' && (amount === '' || Number.isNaN(cents));
  const change = useMutation({
    mutationFn: () => api.put<BudgetRow>(target, { budgetCents, thresholdsPercent: percentsOf(thresholds) }),
    onSuccess: async () => {
      await onChanged();
      onClose();
    },
  });
  return (
    <Modal opened onClose={onClose} title={title}>
      <ChangeForm change={change} action="Save" disabled={isMissing}>
        <Select
          label="Budget"
          allowDeselect={false}
          data={[
            { value: 'amount', label: 'an amount each month' },
            { value: 'default', label: of.keyId === null ? 'as the plan says' : 'as the profile says' },
            { value: 'none', label: 'no budget' },
          ]}
          value={kind}
          onChange={(value) => setKind(value ?? 'default')}
        />
        {kind === 'amount' ? (
          <NumberInput
            label={`Amount a month (${currency})`}
            required
            min={0}
            decimalScale={2}
            value={amount}
            onChange={setAmount}
          />
        ) : null}
        <TextInput
          label="Thresholds (%)"
          description="Percentages in ascending order. Empty: those of the configuration."
          placeholder="50, 80, 100"
          value={thresholds}
          onChange={({ currentTarget }) => setThresholds(currentTarget.value)}
        />
      </ChangeForm>
    </Modal>
  );
}
