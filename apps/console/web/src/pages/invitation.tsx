import { Anchor, Button, Container, Paper, Stack, Text, TextInput, Title } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useState, type FormEvent } from 'react';
import type { InvitationOffer } from '../../../src/api/answers';
import { PasswordField } from '../account/password-field';
import { api, isSignedOut } from '../backend/api';
import { Failure } from '../parts/failure';
import { useMe } from '../backend/me';

const MIN_PASSWORD_CHARS = 12;

/** Accepts an invitation: creates an account, or joins with the one that is signed in. */
export function Invitation() {
  // The secret leaves the address line at once, so that it is in no history.
  const [secret] = useState(() => location.hash.slice(1));
  useEffect(() => history.replaceState(null, '', location.pathname), []);
  const me = useMe();
  // With any other error, the person may be signed in.
  const isNobody = isSignedOut(me.error);
  const offer = useQuery({
    queryKey: ['invitation', secret],
    queryFn: () => api.post<InvitationOffer>('/invitation/look', { secret }),
    retry: false,
  });
  return (
    <Container size={460} py={60} component="main">
      <Title order={1} ta="center">
        Your invitation
      </Title>
      <Paper withBorder p="lg" mt="lg" radius="md">
        <Failure error={offer.error} />
        {offer.data && isNobody ? <MakeAccount secret={secret} offer={offer.data} /> : null}
        {offer.data && me.data && !isNobody ? <Join secret={secret} offer={offer.data} email={me.data.email} /> : null}
        {offer.data && !me.data && !isNobody ? <Failure error={me.error} retry={() => void me.refetch()} /> : null}
      </Paper>
    </Container>
  );
}

function Offer({ offer: { operator, tenantName, role } }: { offer: InvitationOffer }) {
  return (
    <Text>
      {operator ? 'You become an operator of this installation' : 'You join'}
      {tenantName ? (
        <>
          {operator ? ', and ' : ' '}
          {operator ? `${role} of ` : ''}
          <b>{tenantName}</b>
          {operator ? '' : ` as ${role}`}
        </>
      ) : null}
      .
    </Text>
  );
}

function Join({ secret, offer, email }: { secret: string; offer: InvitationOffer; email: string }) {
  const enter = useEnter();
  const accept = useMutation({ mutationFn: () => api.post('/invitation/accept', { secret }), onSuccess: enter });
  return (
    <Stack>
      <Offer offer={offer} />
      <Button onClick={() => accept.mutate()} loading={accept.isPending}>
        Accept as {email}
      </Button>
      <Failure error={accept.error} />
    </Stack>
  );
}

function MakeAccount({ secret, offer }: { secret: string; offer: InvitationOffer }) {
  const enter = useEnter();
  const [name, setName] = useState('');
  const [email, setEmail] = useState(offer.email ?? '');
  const [password, setPassword] = useState('');
  // The link works once, so only the sign-in is repeated after it failed.
  const [isMade, setMade] = useState(false);
  const accept = useMutation({
    mutationFn: async () => {
      if (!isMade) await api.post('/invitation/accept-as-new', { secret, name, email, password });
      setMade(true);
      await api.post('/auth/sign-in/email', { email, password });
    },
    onSuccess: enter,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    accept.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        <Offer offer={offer} />
        <TextInput
          label="Name"
          autoComplete="name"
          required
          maxLength={100}
          readOnly={isMade}
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <TextInput
          label="E-mail"
          type="email"
          autoComplete="username"
          required
          readOnly={isMade || offer.email !== null}
          value={email}
          onChange={({ currentTarget }) => setEmail(currentTarget.value)}
        />
        <PasswordField
          label="Password"
          description={`At least ${MIN_PASSWORD_CHARS} characters.`}
          autoComplete="new-password"
          required
          minLength={MIN_PASSWORD_CHARS}
          readOnly={isMade}
          value={password}
          onChange={({ currentTarget }) => setPassword(currentTarget.value)}
        />
        <Button type="submit" loading={accept.isPending}>
          {isMade ? 'Sign in' : 'Make the account'}
        </Button>
        {isMade && accept.isError ? <Text size="sm">The account exists now, but the sign-in failed.</Text> : null}
        <Failure error={accept.error} />
        <Text size="sm">
          Do you already have an account?{' '}
          <Anchor href="/console/sign-in" size="sm" underline="always">
            Sign in
          </Anchor>
          , then open the link again.
        </Text>
      </Stack>
    </form>
  );
}

function useEnter() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  return async () => {
    queries.clear();
    await navigate({ to: '/', replace: true });
  };
}
