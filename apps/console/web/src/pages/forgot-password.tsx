import { Anchor, Button, Container, Paper, Skeleton, Stack, Text, TextInput, Title } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState, type FormEvent } from 'react';
import { api } from '../backend/api';
import { Failure } from '../parts/failure';
import { useSignInOptions } from '../account/sign-in-options';

/** Asks for a link by mail. */
export function ForgotPassword() {
  const options = useSignInOptions();
  return (
    <Container size={420} py={60} component="main">
      <Title order={1} ta="center">
        Forgot your password?
      </Title>
      <Paper withBorder p="lg" mt="lg" radius="md">
        <Failure error={options.error} retry={() => void options.refetch()} />
        {options.isPending ? <Skeleton h={160} aria-label="Loading" /> : null}
        {options.data ? options.data.mail ? <AskForLink /> : <AskAPerson /> : null}
      </Paper>
      <Text size="sm" mt="md" ta="center">
        <Anchor component={Link} to="/sign-in" size="sm" underline="always">
          Back to the sign-in
        </Anchor>
      </Text>
    </Container>
  );
}

/** Without a server for mail. */
const AskAPerson = () => (
  <Stack>
    <Text>This console sends no mail. An operator of it, or an owner of your tenant, can make a link for you.</Text>
    <Text size="sm">With the link you set a new password. It works once, for an hour.</Text>
  </Stack>
);

function AskForLink() {
  const [email, setEmail] = useState('');
  const ask = useMutation({ mutationFn: () => api.post<void>('/recovery/request', { email }) });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    ask.mutate();
  };
  if (ask.isSuccess)
    return (
      <Stack role="status">
        <Text>If {email} has an account with a password, a link is on its way. It works once, for an hour.</Text>
        <Text size="sm">
          Nothing arrives? Check your spam folder. If you sign in by single sign-on, you have no password here. An
          operator, or an owner of your tenant, can also make a link.
        </Text>
      </Stack>
    );
  return (
    <form onSubmit={submit}>
      <Stack>
        <Text size="sm">You get an e-mail with a link to set a new one.</Text>
        <TextInput
          label="E-mail"
          type="email"
          autoComplete="username"
          required
          value={email}
          onChange={({ currentTarget }) => setEmail(currentTarget.value)}
        />
        <Button type="submit" loading={ask.isPending}>
          Send the link
        </Button>
        <Failure error={ask.error} />
      </Stack>
    </form>
  );
}
