import { Alert, Button, Code, Group, Text } from '@mantine/core';
import { ApiFailure } from '../backend/api';

/** What happened, what to do, and the request id to ask about. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  if (!error) return null;
  const failure = error instanceof ApiFailure ? error : null;
  return (
    <Alert color="red" variant="outline" role="alert" title="This did not work">
      <Text size="sm">{failure?.message ?? 'The page could not be shown. Try again, or reload it.'}</Text>
      {failure?.requestId ? (
        <Text size="sm" mt="xs">
          Request id <Code>{failure.requestId}</Code>
        </Text>
      ) : null}
      {retry ? (
        <Group mt="sm">
          <Button size="xs" variant="default" onClick={retry}>
            Try again
          </Button>
        </Group>
      ) : null}
    </Alert>
  );
}

/** In the place of a page whose script did not arrive, as after an update of the console, or failed. */
export const BrokenPage = ({ error }: { error: unknown }) => <Failure error={error} retry={() => location.reload()} />;

const SIGN_ON_FAILURES: Readonly<Record<string, string>> = {
  account_not_linked: 'This address has an account with a password. Sign in with it, and connect single sign-on there.',
  signup_disabled: 'You have no account here. Ask an owner of your tenant for an invitation.',
  email_not_found:
    'Your address is not verified, its domain may not sign in here, or it has characters that are not allowed.',
  email_does_not_match: 'Sign in at the provider with the address of this account.',
  another_subject:
    'This address has an account that is connected with another account of the provider. If it is yours, sign in ' +
    'by password and connect this one, too. Otherwise ask your operator.',
  account_already_linked_to_different_user: 'This account of the provider is connected with another person here.',
  unavailable: 'A service does not answer now. Try again shortly.',
  rate_limited: 'Too many attempts. Wait a minute.',
  unable_to_get_user_info: 'The provider sent no valid profile. Try again, or ask your operator.',
  access_denied: 'The provider did not let you in.',
};

/** Why single sign-on led back here, if it did: the address has the code of the error. */
export function SignOnFailure() {
  const error = new URLSearchParams(location.search).get('error');
  if (error === null) return null;
  return (
    <Alert color="red" variant="outline" role="alert" title="Single sign-on did not work">
      <Text size="sm">{SIGN_ON_FAILURES[error] ?? 'Try again, sign in by password, or ask your operator.'}</Text>
    </Alert>
  );
}
