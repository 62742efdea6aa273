import { ConfirmButton } from '../parts/confirm';

interface RevokeProps {
  what: 'key' | 'token';
  name: string;
  revoke: () => Promise<void>;
  onDone: () => Promise<unknown>;
}

/** A button that revokes after the person has typed the name: a revocation cannot be undone. */
export const Revoke = ({ what, name, revoke, onDone }: RevokeProps) => (
  <ConfirmButton
    label={`Revoke ${name}`}
    title={`Revoke the ${what} ${name}`}
    text={`Requests with this ${what} are refused within a second. This cannot be undone.`}
    action="Revoke"
    typed={name}
    work={revoke}
    onDone={onDone}
  />
);
