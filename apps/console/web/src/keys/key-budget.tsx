import { Progress, Stack, Text } from '@mantine/core';
import type { KeyBudgetState } from '../../../src/api/answers';
import { Money } from '../parts/format';
import { usePerson } from '../backend/me';
import { percentOf, spentOf } from './budget-share';

/** What a key spent of its monthly budget, and what its running requests hold of it. */
export function KeyBudget({ of }: { of: KeyBudgetState | null }) {
  const { currency } = usePerson();
  if (of === null) return <>none</>;
  const [spent, held] = [BigInt(of.spentNanos), BigInt(of.heldNanos ?? 0)];
  const { percent, label } = spentOf(spent, of.budgetCents);
  const used = Math.min(percent, 100);
  const heldPercent = of.budgetCents === 0 ? 0 : percentOf(held, of.budgetCents);
  return (
    <Stack gap={4} miw={120}>
      <Text size="sm">
        <Money nanos={spent} /> of <Money cents={of.budgetCents} currency={currency} />
      </Text>
      <Progress.Root>
        <Progress.Section value={used} color={used >= 100 ? 'red' : 'indigo'} aria-label={label} />
        {of.budgetCents === 0 ? null : (
          <Progress.Section
            value={Math.min(heldPercent, 100 - used)}
            color="orange"
            aria-label={`${heldPercent} % of the budget is held`}
          />
        )}
      </Progress.Root>
      <Text size="xs">{of.heldNanos === null ? 'held: not known now' : <Held nanos={held} />}</Text>
    </Stack>
  );
}

const Held = ({ nanos }: { nanos: bigint }) => (
  <>
    <Money nanos={nanos} /> held
  </>
);
