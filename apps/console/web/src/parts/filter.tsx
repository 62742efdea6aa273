import { Select, type SelectProps, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { ModelList } from '../../../src/api/answers';
import { api } from '../backend/api';
import { useKeyChoice } from '../backend/key-choice';
import { useTenant } from '../backend/me';

/** While a person types, nothing is searched. */
const TYPING_MS = 250;

interface Chosen {
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}

interface FilterProps extends Chosen {
  label: string;
  data: readonly { value: string; label: string }[];
  /** The name of the chosen value, if `data` lacks it. */
  name?: string | undefined;
  field?: Pick<SelectProps, 'limit' | 'nothingFoundMessage' | 'onDropdownOpen'>;
}

/** A choice of one value, or of all. A value of the URL that is not known is shown, too. */
export function Filter({ label, value, data, onChange, name, field }: FilterProps) {
  const isKnown = value === undefined || data.some((one) => one.value === value);
  return (
    <Select
      aria-label={label}
      placeholder={label}
      size="xs"
      w={170}
      clearable
      searchable
      data={isKnown ? data : [...data, { value, label: name ?? value }]}
      value={value ?? null}
      onChange={(chosen) => onChange(chosen ?? undefined)}
      {...field}
    />
  );
}

/** A choice of one model, or of all. They load when it is opened first. */
export function ModelFilter(chosen: Chosen) {
  const { id, path } = useTenant();
  const [isOpened, setOpened] = useState(false);
  const { data, error, isPending } = useQuery({
    queryKey: ['models', id],
    queryFn: () => api.get<ModelList>(path('models')),
    enabled: isOpened,
  });
  const models = (data?.data ?? []).map((row) => ({ value: row.id, label: row.id }));
  const field = {
    onDropdownOpen: () => setOpened(true),
    nothingFoundMessage: error ? error.message : isPending ? 'Loading…' : 'No such model',
  };
  return <Filter label="Model" data={models} field={field} {...chosen} />;
}

/** A choice of one key by its name, or of all keys. */
export function KeyFilter({ name, ...chosen }: Chosen & Pick<FilterProps, 'name'>) {
  const { keys, field } = useKeyChoice();
  const data = keys.map((row) => ({ value: row.id, label: `${row.name} …${row.last4}` }));
  return <Filter label="Key" data={data} name={name} field={field} {...chosen} />;
}

interface SearchFieldProps {
  label: string;
  /** What is searched for at first. */
  value?: string;
  onSearch: (text: string) => void;
}

/** Searches when a person stops typing. */
export function SearchField({ label, value = '', onSearch }: SearchFieldProps) {
  const [typed, setTyped] = useState(value);
  const search = useDebouncedCallback(onSearch, TYPING_MS);
  const type = (text: string) => {
    setTyped(text);
    search(text.trim());
  };
  return <TextInput label={label} value={typed} onChange={({ currentTarget }) => type(currentTarget.value)} />;
}
