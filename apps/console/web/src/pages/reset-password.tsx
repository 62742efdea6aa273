import { Anchor, Button, Container, Paper, Skeleton, Stack, Text, TextInput, Title } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect, useState, type FormEvent } from 'react';
import type { RecoveryOffer } from '../../../src/api/answers';
import { api } from '../backend/api';
import { Failure } from '../parts/failure';
import { PasswordField } from '../account/password-field';

const MIN_PASSWORD_CHARS = 12;

/** Sets the password of the person for whom a link was created. */
export function ResetPassword() {
  // The secret leaves the address line at once, so that it is in no history.
  const [secret] = useState(() => location.hash.slice(1));
  useEffect(() => history.replaceState(null, '', location.pathname), []);
  const offer = useQuery({
    queryKey: ['recovery', secret],
    queryFn: () => api.post<RecoveryOffer>('/recovery/look', { secret }),
    retry: false,
    // Once used, the link would be refused.
    staleTime: Infinity,
  });
  return (
    <Container size={460} py={60} component="main">
      <Title order={1} ta="center">
        A new password
      </Title>
      <Paper withBorder p="lg" mt="lg" radius="md">
        {offer.isPending ? <Skeleton h={160} aria-label="Loading" /> : null}
        {offer.error && !offer.data ? <Refused error={offer.error} /> : null}
        {offer.data ? <SetPassword secret={secret} offer={offer.data} /> : null}
      </Paper>
    </Container>
  );
}

const Refused = ({ error }: { error: unknown }) => (
  <Stack>
    <Failure error={error} />
    <Anchor component={Link} to="/forgot-password" size="sm" underline="always">
      Ask for a new link
    </Anchor>
  </Stack>
);

function SetPassword({ secret, offer }: { secret: string; offer: RecoveryOffer }) {
  const removed = offer.removesTotp ? 'passkeys and the second factor' : 'passkeys';
  const queries = useQueryClient();
  const [password, setPassword] = useState('');
  const set = useMutation({
    mutationFn: () => api.post<RecoveryOffer>('/recovery/use', { secret, password }),
    // A session of this browser has ended, too.
    onSuccess: () => queries.removeQueries({ queryKey: ['me'] }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    set.mutate();
  };
  if (set.isSuccess)
    return (
      <Stack role="status">
        <Text>The password is set, and all sessions have ended.</Text>
        <Text>All {removed} were removed. Add them again under Account.</Text>
        <Button component={Link} to="/sign-in">
          Sign in
        </Button>
      </Stack>
    );
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput label="E-mail" type="email" autoComplete="username" readOnly value={offer.email} />
        <PasswordField
          label="New password"
          description={`At least ${MIN_PASSWORD_CHARS} characters. It ends all sessions, and removes all ${removed}.`}
          autoComplete="new-password"
          required
          minLength={MIN_PASSWORD_CHARS}
          value={password}
          onChange={({ currentTarget }) => setPassword(currentTarget.value)}
        />
        <Button type="submit" loading={set.isPending}>
          Set the password
        </Button>
        {set.error ? <Refused error={set.error} /> : null}
      </Stack>
    </form>
  );
}
