import { Injectable } from '@nestjs/common';
import type { Author, RequestOf } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';

/** The `name` of a person is the e-mail address. It is erased with the names of a tenant. */
export type Change = Omit<RequestOf<'auth.audit.record'>, 'by'>;

/** Where a request came from. */
export type Origin = Pick<Author, 'address' | 'requestId'>;

/**
 * The console's own changes in the audit log. The row is committed before the change is, so no change is missing.
 * UnavailableError: there is no row, so the change must not be made.
 */
@Injectable()
export class Changes {
  constructor(private readonly services: ServiceClient) {}

  /** No author: a service made the change. */
  async record(by: Author | undefined, change: Change): Promise<void> {
    await this.services.request('auth.audit.record', { ...change, ...(by && { by }) });
  }
}

/** The signed-in person as the author. */
export const personAs = (userId: string, email: string, from: Origin): Author & { id: string } => ({
  ...{ kind: 'person', id: userId, name: email },
  address: from.address,
  requestId: from.requestId,
});
