import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { Failure } from './failure';

interface RevokeProps {
  what: 'key' | 'token';
  name: string;
  revoke: () => Promise<void>;
  onDone: () => Promise<unknown>;
}

/** A button that revokes after the person has typed the name: a revocation cannot be undone. */
export function Revoke({ what, name, revoke, onDone }: RevokeProps) {
  const [isOpen, setOpen] = useState(false);
  const [typed, setTyped] = useState('');
  const mutation = useMutation({
    mutationFn: revoke,
    onSuccess: async () => {
      await onDone();
      setOpen(false);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    mutation.mutate();
  };
  return (
    <>
      <Button size="xs" px={8} variant="default" aria-label={`Revoke ${name}`} onClick={() => setOpen(true)}>
        Revoke
      </Button>
      <Modal opened={isOpen} onClose={() => setOpen(false)} title={`Revoke the ${what} ${name}`}>
        <form onSubmit={submit}>
          <Stack>
            <Text>Requests with this {what} are refused within a second. This cannot be undone.</Text>
            <TextInput
              label={`Type ${name} to confirm`}
              value={typed}
              onChange={({ currentTarget }) => setTyped(currentTarget.value)}
              data-autofocus
            />
            <Group justify="flex-end">
              <Button type="submit" color="red" disabled={typed !== name} loading={mutation.isPending}>
                Revoke
              </Button>
            </Group>
            <Failure error={mutation.error} />
          </Stack>
        </form>
      </Modal>
    </>
  );
}
