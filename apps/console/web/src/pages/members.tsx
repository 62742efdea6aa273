import { Alert, Button, Group, Select, Stack, Text, TextInput, Title } from '@mantine/core';
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { InvitationCreated, MemberList, MemberRow, TenantRole } from '../../../src/api/answers';
import { api, queryOf } from '../backend/api';
import { Confirm, ConfirmButton } from '../parts/confirm';
import { ChangeForm } from '../parts/change-form';
import { Failure } from '../parts/failure';
import { Time } from '../parts/format';
import { usePerson, useTenant } from '../backend/me';
import { More } from '../parts/more';
import { Answer, Command, DataTable, Page } from '../parts/page';
import { PasswordLink } from '../account/password-link';
import { RoleTable } from './members-roles';
import { ShownOnce } from '../parts/shown-once';

const ROLES: { value: TenantRole; label: string }[] = [
  { value: 'owner', label: 'owner – everything, and who is owner' },
  { value: 'admin', label: 'admin – everything but owners' },
  { value: 'billing', label: 'billing – credit, budgets and usage' },
  { value: 'member', label: 'member – keys and usage' },
  { value: 'viewer', label: 'viewer – reads usage, requests and keys' },
];

/** Settings → Members: who belongs to the tenant, in which role. */
export function MembersPage() {
  const { id, may, mayGrant, path } = useTenant();
  const { email: ownEmail } = usePerson();
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const members = useInfiniteQuery({
    queryKey: ['members', id],
    queryFn: ({ pageParam }) => api.get<MemberList>(`${path('members')}${queryOf({ after: pageParam })}`),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
    select: ({ pages }) => ({ ...pages[0]!, data: pages.flatMap(({ data }) => data) }),
  });
  const refresh = () => queries.invalidateQueries({ queryKey: ['members', id] });
  const [roleOf, setRoleOf] = useState<{ member: MemberRow; role: string } | null>(null);
  const withdraw = useMutation({
    mutationFn: (invitation: string) => api.delete(path('invitations', invitation)),
    onSuccess: refresh,
  });
  return (
    <Page
      title="Members"
      action={may('members.write') ? <Button onClick={() => setOpen(true)}>Invite a person</Button> : null}
    >
      {isOpen ? <Invite onClose={() => setOpen(false)} onInvited={refresh} /> : null}
      {roleOf ? (
        <Confirm
          title={`Change the role of ${roleOf.member.name}`}
          text={`From ${roleOf.member.role} to ${roleOf.role}. It is in force at once.`}
          action="Change the role"
          work={() => api.patch<void>(path('members', roleOf.member.userId), { role: roleOf.role })}
          onDone={refresh}
          onClose={() => setRoleOf(null)}
        />
      ) : null}
      <Failure error={withdraw.error} />
      <Answer of={members}>
        {({ data, invitations, roles }) => (
          <>
            <DataTable
              label="Members"
              ids={data.map(({ userId }) => userId)}
              head={['Name', 'E-mail', 'Role', 'Since (UTC)', 'Actions']}
              rows={data.map((member) => [
                member.name,
                member.email,
                mayGrant(member.role) ? (
                  <Select
                    aria-label={`Role of ${member.name}`}
                    size="xs"
                    w={130}
                    allowDeselect={false}
                    data={ROLES.map(({ value }) => value).filter(mayGrant)}
                    value={member.role}
                    onChange={(role) => role !== null && role !== member.role && setRoleOf({ member, role })}
                  />
                ) : (
                  member.role
                ),
                <Time at={member.createdAt} />,
                <Group gap="xs" wrap="nowrap">
                  {may('members.recover') && member.email !== ownEmail ? (
                    <PasswordLink name={member.name} path={path('members', member.userId, 'recovery')} />
                  ) : null}
                  {mayGrant(member.role) ? (
                    <ConfirmButton
                      label={`Remove ${member.name}`}
                      title={`Remove ${member.name} from the tenant`}
                      text="The person no longer sees this tenant. Keys and tokens that the person made continue to work."
                      action="Remove"
                      typed={member.name}
                      work={() => api.delete(path('members', member.userId))}
                      onDone={refresh}
                    />
                  ) : null}
                </Group>,
              ])}
            />
            <More label="More members" of={members} />
            <Title order={2} size="h4">
              Open invitations
            </Title>
            {invitations.length === 0 ? (
              <Text size="sm">There are none.</Text>
            ) : (
              <DataTable
                label="Open invitations"
                ids={invitations.map(({ id }) => id)}
                head={['E-mail', 'Role', 'Expires (UTC)', 'Actions']}
                rows={invitations.map((invitation) => [
                  invitation.email,
                  invitation.role,
                  <Time at={invitation.expiresAt} />,
                  invitation.role !== null && mayGrant(invitation.role) ? (
                    <Button
                      size="xs"
                      variant="default"
                      aria-label={`Withdraw the invitation of ${invitation.email}`}
                      onClick={() => withdraw.mutate(invitation.id)}
                    >
                      Withdraw
                    </Button>
                  ) : null,
                ])}
              />
            )}
            <RoleTable roles={roles} />
          </>
        )}
      </Answer>
    </Page>
  );
}

function Invite({ onClose, onInvited }: { onClose: () => void; onInvited: () => Promise<void> }) {
  const { mayGrant, path } = useTenant();
  const [email, setEmail] = useState('');
  const [role, setRole] = useState<string>('member');
  const invite = useMutation({
    mutationFn: () => api.post<InvitationCreated>(path('invitations'), { email, role }),
    onSuccess: onInvited,
  });
  return (
    <ShownOnce onClose={onClose} title="Invite a person">
      {invite.data ? (
        <Stack>
          {invite.data.link === null ? (
            <Text>The invitation was sent to {email}.</Text>
          ) : (
            <>
              <Alert variant="outline" color="orange" title="Send this link to the person">
                It works once, for seven days, and is shown only now.
              </Alert>
              <Command text={invite.data.link} label="Link" />
            </>
          )}
          <Group justify="flex-end">
            <Button onClick={onClose}>Done</Button>
          </Group>
        </Stack>
      ) : (
        <ChangeForm change={invite} action="Invite">
          <TextInput
            label="E-mail"
            type="email"
            required
            data-autofocus
            value={email}
            onChange={({ currentTarget }) => setEmail(currentTarget.value)}
          />
          <Select
            label="Role"
            allowDeselect={false}
            data={ROLES.filter(({ value }) => mayGrant(value))}
            value={role}
            onChange={(value) => setRole(value ?? 'member')}
          />
        </ChangeForm>
      )}
    </ShownOnce>
  );
}
