import { Button, Group, Text, TextInput } from '@mantine/core';
import { useState, type FormEvent } from 'react';
import { Filter } from '../parts/filter';
import { daysOf, monthOf, monthsUntil, rangeOfDays, rangeOfMonth, type Days, type Range } from './ranges';

/** More digits of a year are a slip. */
const LAST_DAY = '9999-12-31';

interface RangeFieldsProps {
  value: Range;
  onChange: (range: Range) => void;
  /** If the range must have both ends. */
  maxDays?: number | undefined;
}

/** A month, or any days, in UTC. */
export function RangeFields({ value, onChange, maxDays }: RangeFieldsProps) {
  // As of the last opening of the list: the page may be open since an earlier month.
  const [nowMs, setNow] = useState(Date.now);
  return (
    <>
      <Filter
        label="Month"
        value={monthOf(value)}
        data={monthsUntil(nowMs)}
        field={{ onDropdownOpen: () => setNow(Date.now()) }}
        onChange={(month) => onChange(month === undefined ? { from: undefined, to: undefined } : rangeOfMonth(month))}
      />
      {/* Another range in the address resets the fields. */}
      <DayFields key={`${value.from} ${value.to}`} {...{ value, onChange, maxDays }} />
    </>
  );
}

/** The browser's own date fields, because the keyboard can fill them. The range changes only when it is applied. */
function DayFields({ value, onChange, maxDays }: RangeFieldsProps) {
  const [days, setDays] = useState<Days>(() => daysOf(value));
  const [error, setError] = useState<string>();
  const apply = (event: FormEvent) => {
    event.preventDefault();
    const range = rangeOfDays(days, maxDays);
    if ('error' in range) return setError(range.error);
    setError(undefined);
    onChange(range);
  };
  const field = (end: keyof Days, label: string) => (
    <TextInput
      type="date"
      size="xs"
      max={LAST_DAY}
      aria-label={`${label} (UTC)`}
      leftSection={<Text size="xs">{label}</Text>}
      leftSectionWidth={72}
      value={days[end]}
      error={error !== undefined}
      aria-describedby={error === undefined ? undefined : 'range-error'}
      onChange={({ currentTarget }) => setDays({ ...days, [end]: currentTarget.value })}
    />
  );
  return (
    <form onSubmit={apply}>
      <Group gap="xs">
        {field('first', 'First day')}
        {field('last', 'Last day')}
        <Button type="submit" size="xs" variant="default">
          Show days
        </Button>
        {error === undefined ? null : (
          <Text id="range-error" role="alert" size="sm">
            {error}
          </Text>
        )}
      </Group>
    </form>
  );
}
