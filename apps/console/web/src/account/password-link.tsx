import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { RecoveryCreated } from '../../../src/api/answers';
import { api } from '../backend/api';
import { Failure } from '../parts/failure';
import { Command } from '../parts/page';
import { ShownOnce } from '../parts/shown-once';

/** Makes a link for a person who forgot the password, and shows it once. */
export function PasswordLink({ name, path }: { name: string; path: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button
        size="xs"
        px={8}
        variant="default"
        aria-label={`Make a password link for ${name}`}
        onClick={() => setOpen(true)}
      >
        Password link
      </Button>
      {isOpen ? <NewLink name={name} path={path} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

function NewLink({ name, path, onClose }: { name: string; path: string; onClose: () => void }) {
  const make = useMutation({ mutationFn: () => api.post<RecoveryCreated>(path) });
  return (
    <ShownOnce onClose={onClose} title={`A new password for ${name}`}>
      <Stack>
        {make.data ? (
          <>
            <Alert variant="outline" color="orange" title="Send this link to the person">
              It works once, for an hour, and is shown only now.
            </Alert>
            <Command text={make.data.link} label="Link" />
            <Group justify="flex-end">
              <Button onClick={onClose}>Done</Button>
            </Group>
          </>
        ) : (
          <>
            <Text>
              Anyone with this link can set a new password. All sessions, passkeys and the second factor of {name} end
              then. Make sure that it is {name} who asks.
            </Text>
            <Group justify="flex-end">
              <Button onClick={() => make.mutate()} loading={make.isPending}>
                Make the link
              </Button>
            </Group>
            <Failure error={make.error} />
          </>
        )}
      </Stack>
    </ShownOnce>
  );
}
