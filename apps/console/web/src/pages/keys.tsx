import { Badge, Button, Group, Text } from '@mantine/core';
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { IssuedKey, KeyList, KeyRow } from '../../../src/api/answers';
import { api, queryOf } from '../backend/api';
import { ChangeForm } from '../parts/change-form';
import { Time } from '../parts/format';
import { KeyBudget } from '../keys/key-budget';
import { ChangeKey, RotateKey } from '../keys/key-changes';
import { bodyOfKey, KeyFields, NEW_KEY } from '../keys/key-fields';
import { askAllEveryMs } from '../backend/live-lists';
import { usePerson, useTenant } from '../backend/me';
import { More } from '../parts/more';
import { NewKey } from '../keys/new-key';
import { DataTable, Empty, Loading, Page, Unanswered } from '../parts/page';
import { Revoke } from '../keys/revoke';
import { ShownOnce } from '../parts/shown-once';

/** The inference keys of the tenant. */
export function KeysPage() {
  const { id, may, path } = useTenant();
  const { inferenceUrl } = usePerson();
  const queries = useQueryClient();
  // Beside the list, whose rows come and go: a dialog that shows a secret once must not leave with its row.
  const [open, setOpen] = useState<'create' | { form: typeof ChangeKey; of: KeyRow } | null>(null);
  const keys = useInfiniteQuery({
    queryKey: ['keys', id],
    queryFn: ({ pageParam }) => api.get<KeyList>(path('keys') + queryOf({ after: pageParam })),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: askAllEveryMs,
  });
  const rows = keys.data?.pages.flatMap(({ data }) => data) ?? [];
  const refresh = () => queries.invalidateQueries({ queryKey: ['keys', id] });
  const close = () => setOpen(null);
  const opener = (action: string, form: typeof ChangeKey, of: KeyRow) => (
    <Button
      size="xs"
      px={8}
      variant="default"
      aria-label={`${action} ${of.name}`}
      onClick={() => setOpen({ form, of })}
    >
      {action}
    </Button>
  );
  return (
    <Page
      title="Keys"
      about="Programs use them to run models. Keep them on servers, never in a browser or an app."
      action={may('keys.write') ? <Button onClick={() => setOpen('create')}>Create a key</Button> : null}
    >
      {open === 'create' ? <CreateKey onClose={close} onCreated={refresh} /> : null}
      {open !== null && open !== 'create' ? <open.form of={open.of} onDone={refresh} onClose={close} /> : null}
      <Unanswered of={keys} />
      {keys.isPending ? <Loading /> : null}
      {keys.data === undefined ? null : rows.length === 0 ? (
        <Empty
          text="There are no keys yet. With a key, a program lists the models like this:"
          command={`curl ${inferenceUrl}/models -H "Authorization: Bearer $TOLLGATE_KEY"`}
        />
      ) : (
        <DataTable
          label="Keys"
          ids={rows.map((key) => key.id)}
          head={[
            'Name',
            'Ends in',
            'Profile',
            'Created (UTC)',
            'Last used (UTC)',
            'Expires (UTC)',
            'Status',
            ...(may('budgets.read') ? ['Budget this month'] : []),
            'Actions',
          ]}
          rows={rows.map((key) => [
            <KeyName of={key} />,
            <Secret of={key} />,
            <>
              {key.profile}
              {key.models === null ? null : <Text size="xs">{key.models.join(', ')}</Text>}
            </>,
            <Time at={key.createdAt} />,
            <Time at={key.lastUsedAt} none="never" />,
            <Time at={key.expiresAt} none="never" />,
            <Badge variant="outline" color={key.status === 'active' ? 'green' : 'gray'}>
              {key.status}
            </Badge>,
            ...(may('budgets.read') ? [<KeyBudget of={key.budget} />] : []),
            may('keys.write') && key.status !== 'revoked' ? (
              <Group gap="xs" wrap="nowrap">
                {opener('Change', ChangeKey, key)}
                {opener('Rotate', RotateKey, key)}
                <Revoke what="key" name={key.name} revoke={() => api.delete(path('keys', key.id))} onDone={refresh} />
              </Group>
            ) : null,
          ])}
        />
      )}
      <More label="More keys" of={keys} />
    </Page>
  );
}

function CreateKey({ onClose, onCreated }: { onClose: () => void; onCreated: () => Promise<void> }) {
  const { path } = useTenant();
  const [draft, setDraft] = useState(NEW_KEY);
  const create = useMutation({
    mutationFn: () => api.post<IssuedKey>(path('keys'), bodyOfKey(draft)),
    onSuccess: onCreated,
  });
  return (
    <ShownOnce onClose={onClose} title={create.data ? 'The new key' : 'Create a key'} size="lg">
      {create.data ? (
        <NewKey value={create.data.key} onClose={onClose} />
      ) : (
        <ChangeForm change={create} action="Create">
          <KeyFields draft={draft} onChange={setDraft} />
        </ChangeForm>
      )}
    </ShownOnce>
  );
}

/** What the key is called, who uses it, and the groups it belongs to. */
const KeyName = ({ of: { name, owner, tags } }: { of: KeyRow }) => (
  <>
    {name}
    {owner === null ? null : <Text size="xs">{owner}</Text>}
    {tags.length === 0 ? null : <Text size="xs">{tags.join(', ')}</Text>}
  </>
);

/** The end of its newest secret, and until when a former one is accepted. */
const Secret = ({ of: { last4, formerUntil } }: { of: KeyRow }) => (
  <>
    <span className="figures">…{last4}</span>
    {formerUntil === null || Date.parse(formerUntil) <= Date.now() ? null : (
      <Text size="xs">
        former secret works until <Time at={formerUntil} />
      </Text>
    )}
  </>
);
