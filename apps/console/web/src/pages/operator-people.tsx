import { Badge, Group } from '@mantine/core';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { PeopleList, PersonRow } from '../../../src/api/answers';
import { api, pathOf, queryOf } from '../backend/api';
import { ConfirmButton } from '../parts/confirm';
import { Failure } from '../parts/failure';
import { SearchField } from '../parts/filter';
import { count, Time } from '../parts/format';
import { usePerson } from '../backend/me';
import { More } from '../parts/more';
import { DataTable, Empty, Loading, Page } from '../parts/page';
import { PasswordLink } from '../account/password-link';

/** Operator → People: everybody who has an account. */
export function OperatorPeoplePage() {
  const queries = useQueryClient();
  const [wanted, setWanted] = useState('');
  const people = useInfiniteQuery({
    queryKey: ['operator', 'people', wanted],
    queryFn: ({ pageParam }) => api.get<PeopleList>(`/operator/people${queryOf({ after: pageParam, search: wanted })}`),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
  });
  const refresh = () => queries.invalidateQueries({ queryKey: ['operator', 'people'] });
  const rows = people.data?.pages.flatMap(({ data }) => data) ?? [];
  return (
    <Page title="People" about="Everybody who has an account in this console.">
      <SearchField label="Search by name or e-mail" onSearch={setWanted} />
      <Failure error={people.error} />
      {people.isPending ? <Loading /> : null}
      {people.data === undefined ? null : rows.length === 0 ? (
        <Empty text="There is no such person." />
      ) : (
        <DataTable
          label="People"
          ids={rows.map(({ userId }) => userId)}
          head={['Name', 'E-mail', '#Tenants', 'Since (UTC)', 'Actions']}
          rows={rows.map((person) => [
            person.name,
            <>
              {person.email} {person.isOperator ? <Badge variant="outline">operator</Badge> : null}
            </>,
            count(person.tenants),
            <Time at={person.createdAt} />,
            <Actions of={person} onDone={refresh} />,
          ])}
        />
      )}
      <More label="More people" of={people} />
    </Page>
  );
}

/** People do the same for themselves on the page of their account. */
function Actions({ of: { userId, name, email, hasPassword }, onDone }: { of: PersonRow; onDone: () => Promise<void> }) {
  const me = usePerson();
  if (email === me.email) return null;
  return (
    <Group gap="xs" wrap="nowrap">
      {hasPassword ? <PasswordLink name={name} path={pathOf('operator', 'people', userId, 'recovery')} /> : null}
      <ConfirmButton
        label={`Erase ${name}`}
        title={`Erase the account of ${name}`}
        text={
          'Its sessions end at once, and it loses all its roles. The audit log keeps its changes without name and ' +
          'address. Keys and tokens continue to work. This cannot be undone.'
        }
        action="Erase"
        typed={email}
        needsProof
        work={(password) => api.post<void>(pathOf('operator', 'people', userId, 'erase'), { password })}
        onDone={onDone}
      />
    </Group>
  );
}
