import { Button, Group, Text, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { api } from '../backend/api';
import { Failure } from '../parts/failure';
import { PasswordField } from './password-field';

const MIN_CHARS = 12;

/** A new password for the person who is signed in. All other sessions end. */
export function ChangePassword() {
  const queries = useQueryClient();
  const [currentPassword, setCurrent] = useState('');
  const [newPassword, setNew] = useState('');
  const change = useMutation({
    mutationFn: () => api.post('/auth/change-password', { currentPassword, newPassword, revokeOtherSessions: true }),
    onSuccess: () => {
      setCurrent('');
      setNew('');
      return queries.invalidateQueries({ queryKey: ['sessions'] });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    change.mutate();
  };
  return (
    <>
      <Title order={2} size="h4">
        Password
      </Title>
      <Text size="sm">A password has at least {MIN_CHARS} characters. Changing it ends all other sessions.</Text>
      <form onSubmit={submit}>
        <Group align="flex-end">
          <PasswordField
            label="Current password"
            autoComplete="current-password"
            required
            w={240}
            value={currentPassword}
            onChange={({ currentTarget }) => setCurrent(currentTarget.value)}
          />
          <PasswordField
            label="New password"
            autoComplete="new-password"
            required
            minLength={MIN_CHARS}
            w={240}
            value={newPassword}
            onChange={({ currentTarget }) => setNew(currentTarget.value)}
          />
          <Button type="submit" variant="default" loading={change.isPending}>
            Change the password
          </Button>
        </Group>
      </form>
      {change.isSuccess ? (
        <Text size="sm" role="status">
          The password is changed.
        </Text>
      ) : null}
      <Failure error={change.error} />
    </>
  );
}
