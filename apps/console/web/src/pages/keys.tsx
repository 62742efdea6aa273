import { Alert, Badge, Button, Group, Modal, Select, Stack, TextInput } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import type { IssuedKey, KeyList, ModelRow, Plan } from '../../../src/api/answers';
import { api } from '../api';
import { CodeLines } from '../code-lines';
import { expiryOf, LIFETIMES } from '../expiry';
import { Failure } from '../failure';
import { Time } from '../format';
import { usePerson, useTenant } from '../me';
import { Answer, Command, DataTable, Empty, Page } from '../page';
import { KeyBudget } from '../key-budget';
import { Revoke } from '../revoke';

/** The inference keys of the tenant. */
export function KeysPage() {
  const { id, may, path } = useTenant();
  const { inferenceUrl } = usePerson();
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const keys = useQuery({ queryKey: ['keys', id], queryFn: () => api.get<KeyList>(path('keys')) });
  const refresh = () => queries.invalidateQueries({ queryKey: ['keys', id] });
  return (
    <Page
      title="Keys"
      about="Programs use them to run models. Keep them on servers, never in a browser or an app."
      action={may('keys.write') ? <Button onClick={() => setOpen(true)}>Create a key</Button> : null}
    >
      {isOpen ? <CreateKey onClose={() => setOpen(false)} onCreated={refresh} /> : null}
      <Answer of={keys}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty
              text="There is no key yet. With one, a program lists the models like this:"
              command={`curl ${inferenceUrl}/models -H "Authorization: Bearer $TOLLGATE_KEY"`}
            />
          ) : (
            <DataTable
              label="Keys"
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
              rows={data.map((key) => [
                key.name,
                <span className="figures">…{key.last4}</span>,
                key.profile,
                <Time at={key.createdAt} />,
                <Time at={key.lastUsedAt} none="never" />,
                <Time at={key.expiresAt} none="never" />,
                <Badge variant="outline" color={key.status === 'active' ? 'green' : 'gray'}>
                  {key.status}
                </Badge>,
                ...(may('budgets.read') ? [<KeyBudget of={key.budget} />] : []),
                may('keys.write') && key.status !== 'revoked' ? (
                  <Revoke what="key" name={key.name} revoke={() => api.delete(path('keys', key.id))} onDone={refresh} />
                ) : null,
              ])}
            />
          )
        }
      </Answer>
    </Page>
  );
}

function CreateKey({ onClose, onCreated }: { onClose: () => void; onCreated: () => Promise<void> }) {
  const { id, path } = useTenant();
  const [name, setName] = useState('');
  const [lifetime, setLifetime] = useState('never');
  const [profile, setProfile] = useState<string | null>(null);
  const plan = useQuery({ queryKey: ['plan', id], queryFn: () => api.get<Plan>(path('plan')) });
  const create = useMutation({
    mutationFn: () =>
      api.post<IssuedKey>(path('keys'), { name, expiresAt: expiryOf(lifetime), ...(profile && { profile }) }),
    onSuccess: onCreated,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate();
  };
  return (
    <Modal opened onClose={onClose} title={create.data ? 'The new key' : 'Create a key'} size="lg">
      {create.data ? (
        <NewKey value={create.data.key} onClose={onClose} />
      ) : (
        <form onSubmit={submit}>
          <Stack>
            <TextInput
              label="Name"
              required
              maxLength={100}
              data-autofocus
              value={name}
              onChange={({ currentTarget }) => setName(currentTarget.value)}
            />
            <Select
              label="Profile"
              description="Limits, models and budget of the key."
              data={plan.data?.profiles ?? []}
              value={profile ?? plan.data?.profiles[0] ?? null}
              onChange={setProfile}
              allowDeselect={false}
            />
            <Select
              label="Expires"
              allowDeselect={false}
              data={LIFETIMES}
              value={lifetime}
              onChange={(value) => setLifetime(value ?? 'never')}
            />
            <Group justify="flex-end">
              <Button type="submit" loading={create.isPending}>
                Create
              </Button>
            </Group>
            <Failure error={create.error} />
          </Stack>
        </form>
      )}
    </Modal>
  );
}

/** The key, and lines that work with it. */
function NewKey({ value, onClose }: { value: string; onClose: () => void }) {
  const { id, path } = useTenant();
  const models = useQuery({
    queryKey: ['models', id],
    queryFn: () => api.get<{ data: ModelRow[] }>(path('models')),
  });
  const model = models.data?.data.find(({ kind }) => kind === 'chat')?.id ?? 'MODEL';
  const body = { model, messages: [{ role: 'user', content: 'Hello' }] };
  return (
    <Stack>
      <Alert variant="outline" color="orange" title="Store this key now">
        It is shown only this once.
      </Alert>
      <Command text={value} label="Key" />
      <CodeLines path="/chat/completions" body={body} apiKey={value} />
      <Group justify="flex-end">
        <Button onClick={onClose}>Done</Button>
      </Group>
    </Stack>
  );
}
