import { Badge, Button, Group, Stack, Text, TextInput, Title } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import type { SessionRow } from '../../../src/api/answers';
import { PasswordField } from '../password-field';
import { api, pathOf } from '../api';
import { Failure, SignOnFailure } from '../failure';
import { Time } from '../format';
import { usePerson } from '../me';
import { Answer, Command, DataTable, Loading, Page } from '../page';
import { addPasskey } from '../passkeys';

interface PasskeyRow {
  id: string;
  name: string | null;
  createdAt: string | null;
}

/** The person's sessions, passkeys and second factor. */
export function Account() {
  const { email } = usePerson();
  const loaded = [useSessions(), usePasskeys(), useSignInOptions()];
  // Together, so that nothing moves while they load.
  const isReady = loaded.every(({ isPending }) => !isPending);
  return (
    <Page title="Account" about={email}>
      {isReady ? (
        <>
          <Sessions />
          <Passkeys />
          <SecondFactor />
          <SignOn />
        </>
      ) : (
        <Loading />
      )}
    </Page>
  );
}

const useSessions = () =>
  useQuery({ queryKey: ['sessions'], queryFn: () => api.get<{ data: SessionRow[] }>('/sessions') });
const usePasskeys = () =>
  useQuery({ queryKey: ['passkeys'], queryFn: () => api.get<PasskeyRow[]>('/auth/passkey/list-user-passkeys') });
const useSignInOptions = () =>
  useQuery({ queryKey: ['sign-in-options'], queryFn: () => api.get<{ oidc: boolean }>('/sign-in-options') });

function Sessions() {
  const queries = useQueryClient();
  const sessions = useSessions();
  const end = useMutation({
    mutationFn: (id: string) => api.delete(pathOf('sessions', id)),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['sessions'] }),
  });
  return (
    <>
      <Title order={2} size="h4">
        Sessions
      </Title>
      <Failure error={end.error} />
      <Answer of={sessions}>
        {({ data }) => (
          <DataTable
            label="Sessions"
            head={['Browser', 'Address', 'Since (UTC)', 'Actions']}
            rows={data.map((session) => [
              session.browser ?? '–',
              session.address ?? '–',
              <Time at={session.createdAt} />,
              session.isCurrent ? (
                <Badge variant="outline">this one</Badge>
              ) : (
                <Button size="xs" variant="default" onClick={() => end.mutate(session.id)}>
                  End
                </Button>
              ),
            ])}
          />
        )}
      </Answer>
    </>
  );
}

function Passkeys() {
  const queries = useQueryClient();
  const [name, setName] = useState('');
  const refresh = () => queries.invalidateQueries({ queryKey: ['passkeys'] });
  const passkeys = usePasskeys();
  const add = useMutation({ mutationFn: () => addPasskey(name), onSuccess: refresh });
  const remove = useMutation({
    mutationFn: (id: string) => api.post('/auth/passkey/delete-passkey', { id }),
    onSuccess: refresh,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    add.mutate();
  };
  return (
    <>
      <Title order={2} size="h4">
        Passkeys
      </Title>
      <Answer of={passkeys}>
        {(data) =>
          data.length === 0 ? (
            <Text>There is none. With a passkey you sign in without a password.</Text>
          ) : (
            <DataTable
              label="Passkeys"
              head={['Name', 'Since (UTC)', 'Actions']}
              rows={data.map((passkey) => [
                passkey.name ?? '–',
                <Time at={passkey.createdAt} />,
                <Button size="xs" variant="default" onClick={() => remove.mutate(passkey.id)}>
                  Remove
                </Button>,
              ])}
            />
          )
        }
      </Answer>
      <form onSubmit={submit}>
        <Group align="flex-end">
          <TextInput
            label="Name of the new passkey"
            required
            maxLength={100}
            value={name}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
          />
          <Button type="submit" variant="default" loading={add.isPending}>
            Add a passkey
          </Button>
        </Group>
      </form>
      <Failure error={add.error ?? remove.error} />
    </>
  );
}

/** TOTP: a code of an authenticator beside the password. */
function SecondFactor() {
  const { hasTotp } = usePerson();
  const queries = useQueryClient();
  const [password, setPassword] = useState('');
  const [code, setCode] = useState('');
  const refresh = () => queries.invalidateQueries({ queryKey: ['me'] });
  const enable = useMutation({
    mutationFn: () => api.post<{ totpURI: string; backupCodes: string[] }>('/auth/two-factor/enable', { password }),
  });
  const verify = useMutation({
    mutationFn: () => api.post('/auth/two-factor/verify-totp', { code }),
    onSuccess: refresh,
  });
  const disable = useMutation({
    mutationFn: () => api.post('/auth/two-factor/disable', { password }),
    onSuccess: refresh,
  });
  const begin = (event: FormEvent) => {
    event.preventDefault();
    if (hasTotp) disable.mutate();
    else enable.mutate();
  };
  const confirm = (event: FormEvent) => {
    event.preventDefault();
    verify.mutate();
  };
  return (
    <>
      <Title order={2} size="h4">
        Second factor
      </Title>
      <Text>{hasTotp ? 'A code is asked for beside the password.' : 'Only the password is asked for.'}</Text>
      <form onSubmit={begin}>
        <Group align="flex-end">
          <PasswordField
            label="Your password"
            autoComplete="current-password"
            required
            w={240}
            value={password}
            onChange={({ currentTarget }) => setPassword(currentTarget.value)}
          />
          <Button type="submit" variant="default" loading={enable.isPending || disable.isPending}>
            {hasTotp ? 'Turn it off' : 'Set it up'}
          </Button>
        </Group>
      </form>
      {enable.data && !hasTotp ? (
        <form onSubmit={confirm}>
          <Stack>
            <Text>Add this address to your authenticator, and keep the backup codes. Both are shown only now.</Text>
            <Command text={enable.data.totpURI} label="Address for the authenticator" />
            <Command text={enable.data.backupCodes.join('\n')} label="Backup codes" />
            <Group align="flex-end">
              <TextInput
                label="Code of the authenticator"
                autoComplete="one-time-code"
                required
                value={code}
                onChange={({ currentTarget }) => setCode(currentTarget.value.trim())}
              />
              <Button type="submit" loading={verify.isPending}>
                Turn it on
              </Button>
            </Group>
          </Stack>
        </form>
      ) : null}
      <Failure error={enable.error ?? verify.error ?? disable.error} />
    </>
  );
}

/** Connects the account with that of the same address at the provider. */
function SignOn() {
  const options = useSignInOptions();
  const link = useMutation({
    mutationFn: () => api.post<{ url: string }>('/auth/link-social'),
    onSuccess: ({ url }) => location.assign(url),
  });
  if (!options.data?.oidc) return null;
  return (
    <>
      <Title order={2} size="h4">
        Single sign-on
      </Title>
      <SignOnFailure />
      <Group>
        <Button variant="default" onClick={() => link.mutate()} loading={link.isPending}>
          Connect this account
        </Button>
      </Group>
      <Failure error={link.error} />
    </>
  );
}
