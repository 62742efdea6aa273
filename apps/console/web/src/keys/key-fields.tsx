import { Select, TagsInput, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ModelList, Plan } from '../../../src/api/answers';
import { api } from '../backend/api';
import { expiryOf, LIFETIMES } from './expiry';
import { useTenant } from '../backend/me';

const MAX_TAGS = 16;
const MAX_MODELS = 100;
const AS_IT_IS = { value: 'keep', label: 'as it is' };

/** The fields of a key that a person sets. */
export interface KeyDraft {
  name: string;
  /** Null: the first of the plan. */
  profile: string | null;
  owner: string;
  tags: string[];
  /** Empty: all of the profile. */
  models: string[];
  lifetime: string;
}

export const NEW_KEY: KeyDraft = { name: '', profile: null, owner: '', tags: [], models: [], lifetime: 'never' };
/** The choice that leaves the expiry of a key as it is. */
export const KEEP = AS_IT_IS.value;

/** The body that creates or changes a key so. */
export const bodyOfKey = ({ name, profile, owner, tags, models, lifetime }: KeyDraft) => ({
  ...{ name, tags, owner: owner.trim() || null, models: models.length === 0 ? null : models },
  ...(profile !== null && { profile }),
  ...(lifetime !== KEEP && { expiresAt: expiryOf(lifetime) }),
});

interface KeyFieldsProps {
  draft: KeyDraft;
  onChange: (draft: KeyDraft) => void;
  /** The key exists, so its expiry can stay. */
  exists?: boolean;
}

/** The fields of a key. */
export function KeyFields({ draft, onChange, exists = false }: KeyFieldsProps) {
  const { id, path } = useTenant();
  const plan = useQuery({ queryKey: ['plan', id], queryFn: () => api.get<Plan>(path('plan')) });
  const models = useQuery({ queryKey: ['models', id], queryFn: () => api.get<ModelList>(path('models')) });
  const set = (change: Partial<KeyDraft>) => onChange({ ...draft, ...change });
  return (
    <>
      <TextInput
        label="Name"
        required
        maxLength={100}
        data-autofocus
        value={draft.name}
        onChange={({ currentTarget }) => set({ name: currentTarget.value })}
      />
      <Select
        label="Profile"
        description="Limits, models and budget of the key."
        data={plan.data?.profiles ?? []}
        value={draft.profile ?? plan.data?.profiles[0] ?? null}
        onChange={(profile) => set({ profile })}
        allowDeselect={false}
      />
      <TextInput
        label="Owner"
        description="Who uses the key, in your own words."
        maxLength={100}
        value={draft.owner}
        onChange={({ currentTarget }) => set({ owner: currentTarget.value })}
      />
      <TagsInput
        label="Tags"
        description="Your own groups of keys. Press Enter after each."
        maxTags={MAX_TAGS}
        value={draft.tags}
        onChange={(tags) => set({ tags })}
      />
      <TagsInput
        label="Models"
        description="The key may use only these models. If empty: all models of its profile."
        maxTags={MAX_MODELS}
        data={models.data?.data.map((model) => model.id) ?? []}
        value={draft.models}
        onChange={(chosen) => set({ models: chosen })}
      />
      <Select
        label="Expires"
        allowDeselect={false}
        data={exists ? [AS_IT_IS, ...LIFETIMES] : LIFETIMES}
        value={draft.lifetime}
        onChange={(value) => set({ lifetime: value ?? draft.lifetime })}
      />
    </>
  );
}
