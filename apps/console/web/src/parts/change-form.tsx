import { Button, Group, Stack } from '@mantine/core';
import type { FormEvent, ReactNode } from 'react';
import { Failure } from './failure';

interface ChangeFormProps {
  /** The mutation that the form sends. */
  change: { mutate: () => void; isPending: boolean; error: Error | null };
  /** The verb on the button. */
  action: string;
  /** The change cannot be undone. */
  isFinal?: boolean;
  disabled?: boolean;
  /** The fields. */
  children: ReactNode;
}

/** The form of a dialog: its fields, the button that sends the change, and the error if the change was refused. */
export function ChangeForm({ change, action, isFinal = false, disabled = false, children }: ChangeFormProps) {
  const submit = (event: FormEvent) => {
    event.preventDefault();
    change.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        {children}
        <Group justify="flex-end">
          <Button type="submit" {...(isFinal && { color: 'red.9' })} disabled={disabled} loading={change.isPending}>
            {action}
          </Button>
        </Group>
        <Failure error={change.error} />
      </Stack>
    </form>
  );
}
