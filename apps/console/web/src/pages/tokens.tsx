import { Alert, Badge, Button, Checkbox, Group, Select, Stack, Text, TextInput } from '@mantine/core';
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { IssuedToken, TokenList, TokenRow } from '../../../src/api/answers';
import { api, queryOf } from '../backend/api';
import { expiryOf, LIFETIMES } from '../keys/expiry';
import { ChangeForm } from '../parts/change-form';
import { Failure } from '../parts/failure';
import { Time } from '../parts/format';
import { useLive } from '../backend/live';
import { usePerson, useTenant } from '../backend/me';
import { More } from '../parts/more';
import { Answer, Command, DataTable, Empty, Page } from '../parts/page';
import { Revoke } from '../keys/revoke';
import { ShownOnce } from '../parts/shown-once';

const SCOPES = [
  { value: 'keys:read', label: 'keys:read – list inference keys' },
  { value: 'keys:write', label: 'keys:write – issue and revoke inference keys' },
  { value: 'usage:read', label: 'usage:read – read usage' },
  { value: 'billing:read', label: 'billing:read – read the credit ledger and receipts' },
  { value: 'tokens:read', label: 'tokens:read – list management tokens' },
] as const;

const stateOf = ({ revokedAt, expiresAt }: TokenRow): 'active' | 'revoked' | 'expired' =>
  revokedAt ? 'revoked' : expiresAt && Date.parse(expiresAt) <= Date.now() ? 'expired' : 'active';

/** Settings → Management tokens: the only place where tokens are created and revoked. */
export function TokensPage() {
  const { id, may, path } = useTenant();
  const { managementUrl } = usePerson();
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  // The last use of a token is shown soon after it happened.
  const tokens = useLive({
    queryKey: ['tokens', id],
    queryFn: () => api.get<TokenList>(path('tokens')),
    stream: path('live', 'tokens'),
  });
  const older = useOlderTokens(tokens.data?.nextCursor ?? null);
  const refresh = () =>
    Promise.all([
      queries.invalidateQueries({ queryKey: ['tokens', id] }),
      queries.invalidateQueries({ queryKey: ['older-tokens', id] }),
    ]);
  return (
    <Page
      title="Management tokens"
      about={
        'Programs use them to manage this tenant. To rotate one, make a second, wait until the first is no longer ' +
        'used, and revoke it.'
      }
      action={may('tokens.write') ? <Button onClick={() => setOpen(true)}>Create a token</Button> : null}
    >
      {isOpen ? <CreateToken onClose={() => setOpen(false)} onCreated={refresh} /> : null}
      <Answer of={tokens}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty
              text="There are no tokens yet. With a token, a program reads the usage like this:"
              command={`curl ${managementUrl}/usage -H "Authorization: Bearer $TOLLGATE_TOKEN"`}
            />
          ) : (
            <DataTable
              label="Management tokens"
              ids={[...data, ...older.rows].map(({ id }) => id)}
              head={[
                'Name',
                'Ends in',
                'Scopes',
                'Created (UTC)',
                'Last used (UTC)',
                'Expires (UTC)',
                'Status',
                'Actions',
              ]}
              rows={[...data, ...older.rows].map((token) => [
                token.name,
                <span className="figures">…{token.last4}</span>,
                token.scopes.join(', '),
                <Time at={token.createdAt} />,
                <Time at={token.lastUsedAt} none="never" />,
                <Time at={token.expiresAt} none="never" />,
                <State token={token} />,
                may('tokens.write') && token.revokedAt === null ? (
                  <Revoke
                    what="token"
                    name={token.name}
                    revoke={() => api.delete(path('tokens', token.id))}
                    onDone={refresh}
                  />
                ) : null,
              ])}
            />
          )
        }
      </Answer>
      <Failure error={older.error} />
      <More label="Older tokens" of={older} />
    </Page>
  );
}

/** The tokens behind the newest ones, which are kept up to date. Null: there are none. */
function useOlderTokens(cursor: string | null) {
  const { id, path } = useTenant();
  const [isWanted, setWanted] = useState(false);
  const older = useInfiniteQuery({
    queryKey: ['older-tokens', id, cursor],
    queryFn: ({ pageParam }) => api.get<TokenList>(path('tokens') + queryOf({ after: pageParam })),
    initialPageParam: cursor ?? '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
    enabled: isWanted && cursor !== null,
  });
  return {
    rows: older.data?.pages.flatMap(({ data }) => data) ?? [],
    error: older.error,
    hasNextPage: cursor !== null && (older.data === undefined || older.hasNextPage),
    isFetchingNextPage: older.isFetching,
    fetchNextPage: async () => {
      setWanted(true);
      if (older.data !== undefined) await older.fetchNextPage();
      else if (isWanted) await older.refetch();
    },
  };
}

function State({ token }: { token: TokenRow }) {
  const state = stateOf(token);
  return (
    <Badge variant="outline" color={state === 'active' ? 'green' : 'gray'} autoContrast>
      {state}
    </Badge>
  );
}

function CreateToken({ onClose, onCreated }: { onClose: () => void; onCreated: () => Promise<unknown> }) {
  const { path } = useTenant();
  const { managementUrl } = usePerson();
  const [name, setName] = useState('');
  const [scopes, setScopes] = useState<string[]>([]);
  const [lifetime, setLifetime] = useState<string>('never');
  const create = useMutation({
    mutationFn: () => api.post<IssuedToken>(path('tokens'), { name, scopes, expiresAt: expiryOf(lifetime) }),
    onSuccess: onCreated,
  });
  return (
    <ShownOnce onClose={onClose} title={create.data ? 'The new token' : 'Create a token'} size="lg">
      {create.data ? (
        <Stack>
          <Alert variant="outline" color="orange" title="Store this token now">
            It is shown only this once.
          </Alert>
          <Command text={create.data.token} label="Token" />
          <Text size="sm">Try it:</Text>
          <Command text={`curl ${managementUrl}/tokens -H "Authorization: Bearer ${create.data.token}"`} />
          <Group justify="flex-end">
            <Button onClick={onClose}>Done</Button>
          </Group>
        </Stack>
      ) : (
        <ChangeForm change={create} action="Create" disabled={scopes.length === 0}>
          <TextInput
            label="Name"
            required
            maxLength={100}
            data-autofocus
            value={name}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
          />
          <Checkbox.Group label="Scopes" description="No scope includes another." value={scopes} onChange={setScopes}>
            <Stack gap="xs" mt="xs">
              {SCOPES.map(({ value, label }) => (
                <Checkbox key={value} value={value} label={label} />
              ))}
            </Stack>
          </Checkbox.Group>
          <Select
            label="Expires"
            allowDeselect={false}
            data={LIFETIMES}
            value={lifetime}
            onChange={(value) => setLifetime(value ?? 'never')}
          />
        </ChangeForm>
      )}
    </ShownOnce>
  );
}
