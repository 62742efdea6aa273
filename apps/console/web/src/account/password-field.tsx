import { PasswordInput, type PasswordInputProps } from '@mantine/core';

/** The kit's field, whose button to show the password is also reached by the keyboard. */
export function PasswordField(props: PasswordInputProps) {
  return (
    <PasswordInput
      {...props}
      visibilityToggleButtonProps={{ tabIndex: 0, 'aria-label': 'Show or hide the password' }}
    />
  );
}
