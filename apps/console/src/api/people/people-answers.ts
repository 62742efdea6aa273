import type { Page } from '@tollgate/contracts';
import type { PersonRow } from '../../access/people';

/** Whose password a link sets. */
export interface RecoveryOffer {
  email: string;
  /** It removes the second factor as well as the passkeys. */
  removesTotp: boolean;
}

/** A link that sets the password of a person. Only this answer has it. */
export interface RecoveryCreated {
  link: string;
  expiresAt: string;
}

/** How people can sign in, and whether the console sends mail. */
export interface SignInOptions {
  oidc: boolean;
  mail: boolean;
}

export type PeopleList = Page<PersonRow>;
export type { PersonRow };
