import { Button, Modal, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { OwnProof } from '../account/own-proof';
import { ChangeForm } from './change-form';
import { useDialog } from './dialogs';
import { isTyped } from './typed';

interface ConfirmProps {
  title: string;
  /** What happens, and whether it can be undone. */
  text: ReactNode;
  /** The verb on the button. */
  action: string;
  /** The person has to type it first. */
  typed?: string;
  /** The person has to prove who they are. */
  needsProof?: boolean;
  /** `password`: their own, if they have to prove who they are by it. */
  work: (password: string) => Promise<unknown>;
  onDone: () => Promise<unknown>;
  onClose: () => void;
}

/** Asks before it does something that others notice at once. */
export function Confirm({ title, text, action, typed = '', needsProof = false, work, onDone, onClose }: ConfirmProps) {
  const [value, setValue] = useState('');
  const [password, setPassword] = useState('');
  const mutation = useMutation({
    mutationFn: () => work(password),
    onSuccess: async () => {
      await onDone();
      onClose();
    },
  });
  return (
    <Modal opened onClose={onClose} title={title}>
      <ChangeForm change={mutation} action={action} isFinal disabled={!isTyped(typed, value)}>
        <Text>{text}</Text>
        {typed === '' ? null : (
          <TextInput
            label={`Type ${typed} to confirm`}
            value={value}
            onChange={({ currentTarget }) => setValue(currentTarget.value)}
            data-autofocus
          />
        )}
        {needsProof ? <OwnProof password={password} onChange={setPassword} /> : null}
      </ChangeForm>
    </Modal>
  );
}

type ConfirmButtonProps = Omit<ConfirmProps, 'onClose'> & { label: string; disabled?: boolean };

/** A button that asks first. `label` is read out in place of the verb. */
export function ConfirmButton({ label, disabled = false, ...confirm }: ConfirmButtonProps) {
  const show = useDialog();
  const ask = () => show(<Confirm {...confirm} onClose={() => show(null)} />);
  return (
    <Button size="xs" px={8} variant="default" aria-label={label} disabled={disabled} onClick={ask}>
      {confirm.action}
    </Button>
  );
}
