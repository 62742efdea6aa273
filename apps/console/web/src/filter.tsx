import { Select } from '@mantine/core';

interface FilterProps {
  label: string;
  value: string | undefined;
  data: readonly { value: string; label: string }[];
  onChange: (value: string | undefined) => void;
}

/** A choice of one value, or of all. A value of the URL that is not known is shown, too. */
export function Filter({ label, value, data, onChange }: FilterProps) {
  const isKnown = value === undefined || data.some((one) => one.value === value);
  return (
    <Select
      aria-label={label}
      placeholder={label}
      size="xs"
      w={170}
      clearable
      searchable
      data={isKnown ? data : [...data, { value, label: value }]}
      value={value ?? null}
      onChange={(chosen) => onChange(chosen ?? undefined)}
    />
  );
}
