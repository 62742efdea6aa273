import type { ReplyOf, RequestOf, Subject } from '@tollgate/contracts';
import { PostgresMessages } from '@tollgate/messaging';
import { PATIENT_CALL_MS } from '@tollgate/testing';

/** Waits longer for a service's answer, for tests of what it answers: a busy machine can take more than the 3 s. */
export class PatientMessages extends PostgresMessages {
  override async request<S extends Subject>(
    subject: S,
    request: RequestOf<S>,
    { deadlineMs = PATIENT_CALL_MS }: { deadlineMs?: number } = {},
  ): Promise<ReplyOf<S>> {
    return super.request(subject, request, { deadlineMs });
  }
}
