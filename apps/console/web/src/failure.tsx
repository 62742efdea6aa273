import { Alert, Button, Code, Group, Text } from '@mantine/core';
import { ApiFailure } from './api';

/** What happened, what to do, and the request id to ask about. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  if (!error) return null;
  const failure = error instanceof ApiFailure ? error : null;
  return (
    <Alert color="red" variant="outline" role="alert" title="This did not work">
      <Text size="sm">{failure?.message ?? 'The page has an error. Reload it.'}</Text>
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
