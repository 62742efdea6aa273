import { Progress, Stack, Text } from '@mantine/core';
import type { KeyBudgetState } from '../../../src/api/answers';
import { Money } from '../parts/format';
import { usePerson } from '../backend/me';

const NANOS_PER_CENT = 10_000_000n;
const PERCENT = 100n;

/** What a key spent of its monthly budget, and what its running requests hold of it. */
export function KeyBudget({ of }: { of: KeyBudgetState | null }) {
  const { currency } = usePerson();
  if (of === null) return <>none</>;
  const limit = BigInt(of.budgetCents) * NANOS_PER_CENT;
  const [spent, held] = [BigInt(of.spentNanos), BigInt(of.heldNanos ?? 0)];
  const percentOf = (nanos: bigint) => (limit === 0n ? (nanos === 0n ? 0 : 100) : Number((nanos * PERCENT) / limit));
  // Nothing is left of a budget of zero.
  const used = limit === 0n ? 100 : Math.min(percentOf(spent), 100);
  return (
    <Stack gap={4} miw={120}>
      <Text size="sm">
        <Money nanos={spent} /> of <Money cents={of.budgetCents} currency={currency} />
      </Text>
      <Progress.Root>
        <Progress.Section
          value={used}
          color={used >= 100 ? 'red' : 'indigo'}
          aria-label={`${used} % of the budget is spent`}
        />
        <Progress.Section
          value={Math.min(percentOf(held), 100 - used)}
          color="orange"
          aria-label={`${percentOf(held)} % of the budget is held`}
        />
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
