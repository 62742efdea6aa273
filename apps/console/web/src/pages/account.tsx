import { Badge, Button, Group, Text, TextInput, Title } from '@mantine/core';
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import type { SessionList } from '../../../src/api/answers';
import { api, pathOf, queryOf } from '../backend/api';
import { browserName } from '../account/browser-name';
import { ChangePassword } from '../account/change-password';
import { Failure, SignOnFailure } from '../parts/failure';
import { Time } from '../parts/format';
import { usePerson } from '../backend/me';
import { More } from '../parts/more';
import { Answer, DataTable, Loading, Page } from '../parts/page';
import { addPasskey } from '../account/passkeys';
import { EraseAccount } from '../account/erase-account';
import { SecondFactor } from '../account/second-factor';
import { useSignInOptions } from '../account/sign-in-options';

interface PasskeyRow {
  id: string;
  name: string | null;
  createdAt: string | null;
}

/** The person's sessions, passkeys, password and second factor. */
export function Account() {
  const { email, hasPassword } = usePerson();
  const loaded = [useSessions(), usePasskeys(), useSignInOptions()];
  // Together, so that nothing moves while they load.
  const isReady = loaded.every(({ isPending }) => !isPending);
  return (
    <Page title="Account" about={email}>
      {isReady ? (
        <>
          <Sessions />
          <Passkeys />
          {hasPassword ? (
            <>
              <ChangePassword />
              <SecondFactor />
            </>
          ) : null}
          <SignOn />
          <EraseAccount />
        </>
      ) : (
        <Loading />
      )}
    </Page>
  );
}

const useSessions = () =>
  useInfiniteQuery({
    queryKey: ['sessions'],
    queryFn: ({ pageParam }) => api.get<SessionList>(`/sessions${queryOf({ after: pageParam })}`),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
    select: ({ pages }) => pages.flatMap(({ data }) => data),
  });
const usePasskeys = () =>
  useQuery({ queryKey: ['passkeys'], queryFn: () => api.get<PasskeyRow[]>('/auth/passkey/list-user-passkeys') });

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
        {(rows) => (
          <DataTable
            label="Sessions"
            ids={rows.map(({ id }) => id)}
            head={['Browser', 'Address', 'Since (UTC)', 'Actions']}
            rows={rows.map((session) => [
              <span title={session.browser ?? undefined}>{browserName(session.browser)}</span>,
              session.address ?? '–',
              <Time at={session.createdAt} />,
              session.isCurrent ? (
                <Badge variant="outline">this session</Badge>
              ) : (
                <Button
                  size="xs"
                  variant="default"
                  aria-label={`End the session of ${session.createdAt.slice(0, 16).replace('T', ' ')}`}
                  onClick={() => end.mutate(session.id)}
                >
                  End
                </Button>
              ),
            ])}
          />
        )}
      </Answer>
      <More label="Older sessions" of={sessions} />
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
    mutationFn: (id: string) => api.delete(pathOf('passkeys', id)),
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
            <Text size="sm">You have no passkey. With one, you sign in without a password.</Text>
          ) : (
            <DataTable
              label="Passkeys"
              ids={data.map(({ id }) => id)}
              head={['Name', 'Since (UTC)', 'Actions']}
              rows={data.map((passkey) => [
                passkey.name ?? '–',
                <Time at={passkey.createdAt} />,
                <Button
                  size="xs"
                  variant="default"
                  aria-label={`Remove ${passkey.name ?? 'the passkey'}`}
                  onClick={() => remove.mutate(passkey.id)}
                >
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

/** Connects the account with the account of the same address at the provider. */
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
