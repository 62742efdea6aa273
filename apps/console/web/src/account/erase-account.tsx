import { Button, Group, Modal, Text, TextInput, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api } from '../backend/api';
import { ChangeForm } from '../parts/change-form';
import { usePerson } from '../backend/me';
import { OwnProof } from './own-proof';

/** The person ends their own account. */
export function EraseAccount() {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Title order={2} size="h4">
        End of the account
      </Title>
      <Text size="sm">
        Erasing the account ends all its sessions. Keys and tokens that you made continue to work, and the audit log
        keeps your changes without your name.
      </Text>
      <Group>
        <Button variant="default" onClick={() => setOpen(true)}>
          Erase the account
        </Button>
      </Group>
      {isOpen ? <Erasure onClose={() => setOpen(false)} /> : null}
    </>
  );
}

function Erasure({ onClose }: { onClose: () => void }) {
  const { email } = usePerson();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [typed, setTyped] = useState('');
  const [password, setPassword] = useState('');
  const erase = useMutation({
    mutationFn: () => api.post<void>('/account/erase', { email: typed, password }),
    onSuccess: async () => {
      queries.clear();
      await navigate({ to: '/sign-in', replace: true });
    },
  });
  return (
    <Modal opened onClose={onClose} title="Erase the account">
      <ChangeForm change={erase} action="Erase" isFinal disabled={typed.toLowerCase() !== email}>
        <Text>Your sessions, passkeys, second factor and roles are deleted. This cannot be undone.</Text>
        <TextInput
          label={`Type ${email} to confirm`}
          autoComplete="off"
          data-autofocus
          value={typed}
          onChange={({ currentTarget }) => setTyped(currentTarget.value.trim())}
        />
        <OwnProof password={password} onChange={setPassword} />
      </ChangeForm>
    </Modal>
  );
}
