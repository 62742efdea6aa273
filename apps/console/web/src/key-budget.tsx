import { Progress, Stack, Text } from '@mantine/core';
import type { KeyBudgetState } from '../../src/api/answers';
import { Money } from './format';
import { usePerson } from './me';

const NANOS_PER_CENT = 10_000_000n;
const PERCENT = 100n;

/** What a key spent of its monthly budget. */
export function KeyBudget({ of }: { of: KeyBudgetState | null }) {
  const { currency } = usePerson();
  if (of === null) return <>none</>;
  const [spent, limit] = [BigInt(of.spentNanos), BigInt(of.budgetCents) * NANOS_PER_CENT];
  const percent = limit === 0n ? 100 : Number((spent * PERCENT) / limit);
  return (
    <Stack gap={4} miw={150}>
      <Text size="sm">
        <Money nanos={spent} /> of <Money cents={of.budgetCents} currency={currency} />
      </Text>
      <Progress
        value={Math.min(percent, 100)}
        color={percent >= 100 ? 'red' : 'indigo'}
        aria-label={`${percent} % of the budget is spent`}
      />
    </Stack>
  );
}
