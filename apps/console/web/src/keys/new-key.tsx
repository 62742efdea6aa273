import { Alert, Button, Group, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ModelList } from '../../../src/api/answers';
import { api } from '../backend/api';
import { CodeLines } from '../playground/code-lines';
import { useTenant } from '../backend/me';
import { Command } from '../parts/page';

/** A secret of a key that was just created, and lines that work with it. */
export function NewKey({ value, onClose }: { value: string; onClose: () => void }) {
  const { id, path } = useTenant();
  const models = useQuery({
    queryKey: ['models', id],
    queryFn: () => api.get<ModelList>(path('models')),
  });
  const model = models.data?.firstChat ?? 'MODEL';
  const body = { model, messages: [{ role: 'user', content: 'Hello' }] };
  return (
    <Stack>
      <Alert variant="outline" color="orange" title="Store this key now">
        It is shown only this once.
      </Alert>
      <Command text={value} label="Key" />
      <CodeLines path="/chat/completions" body={body} apiKey={value} />
      <Group justify="flex-end">
        <Button onClick={onClose}>Done</Button>
      </Group>
    </Stack>
  );
}
