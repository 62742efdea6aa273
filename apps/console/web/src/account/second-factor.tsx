import { Button, Group, Skeleton, Stack, Text, TextInput, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState, type FormEvent } from 'react';
import type { Me } from '../../../src/api/answers';
import { api } from '../backend/api';
import { codeOf } from './code';
import { Failure } from '../parts/failure';
import { usePerson } from '../backend/me';
import { Command } from '../parts/page';
import { PasswordField } from './password-field';
import { ME } from '../backend/queries';

/** Only this page needs it, and only once. */
const QrCode = lazy(() => import('./qr-code'));
const QR_SIZE = 200;

/** TOTP: a code of an authenticator beside the password. */
export function SecondFactor() {
  const { hasTotp } = usePerson();
  const queries = useQueryClient();
  const [password, setPassword] = useState('');
  const [typed, setTyped] = useState('');
  const enable = useMutation({
    mutationFn: () => api.post<{ totpURI: string; backupCodes: string[] }>('/auth/two-factor/enable', { password }),
  });
  const verify = useMutation({
    mutationFn: () => api.post('/auth/two-factor/verify-totp', { code: codeOf(typed) }),
    onSuccess: () => end(true),
  });
  const disable = useMutation({
    mutationFn: () => api.post('/auth/two-factor/disable', { password }),
    onSuccess: () => end(false),
  });
  /** What was shown or typed once is never shown again: not even when the second factor is turned off later. */
  const end = (isOn: boolean) => {
    enable.reset();
    setPassword('');
    setTyped('');
    queries.setQueryData<Me>(ME, (me) => me && { ...me, hasTotp: isOn });
    return queries.invalidateQueries({ queryKey: ME });
  };
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
      <Text size="sm">{hasTotp ? 'A code is asked for beside the password.' : 'Only the password is asked for.'}</Text>
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
            <Text size="sm">
              Scan the code with your authenticator, or add the address by hand. Keep the backup codes. All are shown
              only now.
            </Text>
            <Suspense fallback={<Skeleton h={QR_SIZE} w={QR_SIZE} />}>
              <QrCode
                value={enable.data.totpURI}
                size={QR_SIZE}
                marginSize={4}
                role="img"
                aria-label="QR code of the address"
              />
            </Suspense>
            <Command text={enable.data.totpURI} label="Address for the authenticator" />
            <Command text={enable.data.backupCodes.join('\n')} label="Backup codes" />
            <Group align="flex-end">
              <TextInput
                label="Code of the authenticator"
                autoComplete="one-time-code"
                required
                value={typed}
                onChange={({ currentTarget }) => setTyped(currentTarget.value)}
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
