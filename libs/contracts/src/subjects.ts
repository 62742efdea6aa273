import type { Authored } from './audit';
import type { AuthSubjects } from './subjects/auth';
import type { BillingSubjects } from './subjects/billing';
import type { MeteringSubjects } from './subjects/metering';

/**
 * Request–reply between services: one entry for each subject, `[request, reply]`. Plain JSON (no
 * bigint, no Date). A handler refuses with a RequestError, whose code is part of the subject's contract.
 * Each service has its own table in subjects/.
 */
export interface Subjects extends AuthSubjects, MeteringSubjects, BillingSubjects {
  /**
   * An invitation that makes an operator, who also becomes owner of `tenantId`. `hash`: of the secret in the link,
   * which only the caller knows. `url`: the link without its fragment, the secret. It works once, until `expiresAt`.
   * not_found (tenant); operator_exists: with `onlyFirst`, there is an operator already.
   */
  'console.operators.invite': [
    Authored<{ hash: string; tenantId?: string; onlyFirst?: boolean }>,
    { id: string; url: string; expiresAt: string },
  ];
  /**
   * Removes the right of an operator from the person with this e-mail address, at once. The account stays. not_found:
   * no invitation made it an operator; last_operator.
   */
  'console.operators.remove': [Authored<{ email: string }>, { userId: string }];
  /**
   * A link with which the person of this e-mail address sets a new password, whoever it is. `hash` and `url`: as for
   * invitations. It works once, until `expiresAt`. not_found; no_password: the person signs in by a provider only.
   */
  'console.people.recover': [Authored<{ email: string; hash: string }>, { url: string; expiresAt: string }];
}

export type Subject = keyof Subjects;
export type RequestOf<S extends Subject> = Subjects[S][0];
export type ReplyOf<S extends Subject> = Subjects[S][1];
