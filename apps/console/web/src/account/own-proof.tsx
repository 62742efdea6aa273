import { Text } from '@mantine/core';
import { usePerson } from '../backend/me';
import { PasswordField } from './password-field';

/** The person proves who they are before they do what cannot be undone. */
export function OwnProof({ password, onChange }: { password: string; onChange: (password: string) => void }) {
  const { hasPassword } = usePerson();
  return hasPassword ? (
    <PasswordField
      label="Your password"
      autoComplete="current-password"
      required
      value={password}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  ) : (
    <Text size="sm">You have no password, so you must have signed in within the last ten minutes.</Text>
  );
}
