import { Anchor, Button, Container, Divider, Paper, Stack, Text, TextInput, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState, type FormEvent } from 'react';
import { PasswordField } from '../account/password-field';
import { api } from '../backend/api';
import { codeOf } from '../account/code';
import { Failure, SignOnFailure } from '../parts/failure';
import { signInWithPasskey } from '../account/passkeys';
import { useSignInOptions } from '../account/sign-in-options';

/** The codes of an authenticator. Every other code is a backup code. */
const SIX_DIGITS = /^\d{6}$/;

/** Password, passkey or OpenID Connect; then the code of TOTP, if the account has it. */
export function SignIn() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [needsCode, setNeedsCode] = useState(false);
  const { data: options } = useSignInOptions();
  const enter = async () => {
    queries.clear();
    await navigate({ to: '/', replace: true });
  };
  const passkey = useMutation({ mutationFn: signInWithPasskey, onSuccess: enter });
  const oidc = useMutation({
    mutationFn: () => api.post<{ url: string }>('/auth/sign-in/social', {}),
    onSuccess: ({ url }) => location.assign(url),
  });
  return (
    <Container size={420} py={60} component="main">
      <Title order={1} ta="center">
        Tollgate
      </Title>
      <Paper withBorder p="lg" mt="lg" radius="md">
        {needsCode ? (
          <CodeForm onDone={enter} />
        ) : (
          <Stack>
            <SignOnFailure />
            <PasswordForm onDone={enter} onCode={() => setNeedsCode(true)} />
            <Divider label="or" />
            <Button variant="default" onClick={() => passkey.mutate()} loading={passkey.isPending}>
              Use a passkey
            </Button>
            {options?.oidc ? (
              <Button variant="default" onClick={() => oidc.mutate()} loading={oidc.isPending}>
                Single sign-on
              </Button>
            ) : null}
            <Failure error={passkey.error ?? oidc.error} />
          </Stack>
        )}
      </Paper>
      <Text size="sm" mt="md" ta="center">
        No account? Ask an owner of your tenant for an invitation.{' '}
        <Anchor href="/docs" size="sm" underline="always">
          Docs
        </Anchor>
      </Text>
    </Container>
  );
}

function PasswordForm({ onDone, onCode }: { onDone: () => Promise<void>; onCode: () => void }) {
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const signIn = useMutation({
    mutationFn: () => api.post<{ twoFactorRedirect?: boolean }>('/auth/sign-in/email', { email, password }),
    onSuccess: ({ twoFactorRedirect }) => (twoFactorRedirect ? onCode() : onDone()),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    signIn.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label="E-mail"
          type="email"
          autoComplete="username webauthn"
          required
          value={email}
          onChange={({ currentTarget }) => setEmail(currentTarget.value)}
        />
        <PasswordField
          label="Password"
          autoComplete="current-password"
          required
          value={password}
          onChange={({ currentTarget }) => setPassword(currentTarget.value)}
        />
        <Button type="submit" loading={signIn.isPending}>
          Sign in
        </Button>
        <Failure error={signIn.error} />
        <Anchor component={Link} to="/forgot-password" size="sm" underline="always">
          Forgot your password?
        </Anchor>
      </Stack>
    </form>
  );
}

function CodeForm({ onDone }: { onDone: () => Promise<void> }) {
  const [typed, setTyped] = useState('');
  const code = codeOf(typed);
  const verify = useMutation({
    mutationFn: () =>
      SIX_DIGITS.test(code)
        ? api.post('/auth/two-factor/verify-totp', { code })
        : api.post('/auth/two-factor/verify-backup-code', { code }),
    onSuccess: onDone,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    verify.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label="Code"
          description="The six digits of your authenticator, or a backup code."
          autoComplete="one-time-code"
          required
          autoFocus
          value={typed}
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
        />
        <Button type="submit" loading={verify.isPending}>
          Continue
        </Button>
        <Failure error={verify.error} />
      </Stack>
    </form>
  );
}
