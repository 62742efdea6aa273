import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { RecoveryCreated } from '../../../src/api/answers';
import { api } from '../backend/api';
import { ChangeForm } from '../parts/change-form';
import { useDialog } from '../parts/dialogs';
import { Command } from '../parts/page';
import { ShownOnce } from '../parts/shown-once';
import { OwnProof } from './own-proof';

/** Creates a link for a person who forgot the password, and shows it once. */
export function PasswordLink({ name, path }: { name: string; path: string }) {
  const show = useDialog();
  return (
    <Button
      size="xs"
      px={8}
      variant="default"
      aria-label={`Make a password link for ${name}`}
      onClick={() => show(<NewLink name={name} path={path} onClose={() => show(null)} />)}
    >
      Password link
    </Button>
  );
}

function NewLink({ name, path, onClose }: { name: string; path: string; onClose: () => void }) {
  const [password, setPassword] = useState('');
  const make = useMutation({ mutationFn: () => api.post<RecoveryCreated>(path, { password }) });
  return (
    <ShownOnce onClose={onClose} title={`A new password for ${name}`}>
      {make.data ? (
        <Stack>
          <Alert variant="outline" color="orange" title="Send this link to the person">
            It works once, for an hour, and is shown only now.
          </Alert>
          <Command text={make.data.link} label="Link" />
          <Group justify="flex-end">
            <Button onClick={onClose}>Done</Button>
          </Group>
        </Stack>
      ) : (
        <ChangeForm change={make} action="Make the link">
          <Text>
            Anyone with this link can set a new password. All sessions, passkeys and the second factor of {name} end
            then. Make sure that it is {name} who asks.
          </Text>
          <OwnProof password={password} onChange={setPassword} />
        </ChangeForm>
      )}
    </ShownOnce>
  );
}
