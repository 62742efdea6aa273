import { Modal, Select, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { IssuedKey, KeyRow } from '../../../src/api/answers';
import { api } from '../backend/api';
import { ChangeForm } from '../parts/change-form';
import { bodyOfKey, KEEP, KeyFields, type KeyDraft } from './key-fields';
import { useTenant } from '../backend/me';
import { NewKey } from './new-key';
import { ShownOnce } from '../parts/shown-once';

interface KeyChangeProps {
  of: KeyRow;
  onDone: () => Promise<unknown>;
  onClose: () => void;
}

/** Changes what a key is called and what it may do. */
export function ChangeKey({ of, onDone, onClose }: KeyChangeProps) {
  const { path } = useTenant();
  const { name, profile, owner, tags, models } = of;
  const [draft, setDraft] = useState<KeyDraft>({
    ...{ name, profile, tags, owner: owner ?? '', models: models ?? [], lifetime: KEEP },
  });
  const change = useMutation({
    mutationFn: () => api.patch<KeyRow>(path('keys', of.id), bodyOfKey(draft)),
    onSuccess: async () => {
      await onDone();
      onClose();
    },
  });
  return (
    <Modal opened onClose={onClose} title={`Change the key ${of.name}`} size="lg">
      <ChangeForm change={change} action="Save">
        <KeyFields draft={draft} onChange={setDraft} exists />
      </ChangeForm>
    </Modal>
  );
}

/** How long a former secret is accepted, in seconds. */
const GRACE_TIMES = [
  { value: '0', label: 'no longer' },
  { value: '3600', label: 'for an hour' },
  { value: '86400', label: 'for a day' },
  { value: '604800', label: 'for a week' },
];
const DEFAULT_GRACE = '86400';

/** Creates the next secret of a key, and shows it once. */
export function RotateKey({ of, onDone, onClose }: KeyChangeProps) {
  const { path } = useTenant();
  const [grace, setGrace] = useState(DEFAULT_GRACE);
  const rotate = useMutation({
    mutationFn: () => api.post<IssuedKey>(path('keys', of.id, 'rotate'), { graceSeconds: Number(grace) }),
    onSuccess: onDone,
  });
  return (
    <ShownOnce onClose={onClose} title={`Rotate the key ${of.name}`} size="lg">
      {rotate.data ? (
        <NewKey value={rotate.data.key} onClose={onClose} />
      ) : (
        <ChangeForm change={rotate} action="Make the next secret">
          <Text>The key gets its next secret. Its id, usage, budget and limits stay.</Text>
          <Select
            label="The current secret works"
            allowDeselect={false}
            data-autofocus
            data={GRACE_TIMES}
            value={grace}
            onChange={(value) => setGrace(value ?? DEFAULT_GRACE)}
          />
        </ChangeForm>
      )}
    </ShownOnce>
  );
}
