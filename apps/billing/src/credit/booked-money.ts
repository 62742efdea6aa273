import { AdmissionStore } from '@tollgate/admission';
import { Injectable } from '@nestjs/common';
import type { BalanceUpdate } from '@tollgate/contracts';
import { AfterCommit } from '../post/after-commit';
import { updateAfterBooking } from '../outbox/update-admission';
import { PoisonWatch } from '../repair/poison-watch';

/** Money is in force when it is answered: a request after the answer can spend it. */
@Injectable()
export class BookedMoney {
  constructor(
    private readonly after: AfterCommit,
    private readonly admission: AdmissionStore,
    private readonly watch: PoisonWatch,
  ) {}

  /** Returns the reply of the booking once the admission store has the balance update. */
  async inForce<T>(work: Promise<{ reply: T; dueInMs: number | null; update: BalanceUpdate }>): Promise<T> {
    const { reply, dueInMs, update } = await work;
    this.after.committed(dueInMs);
    await updateAfterBooking(this.admission, update);
    // A forged version may block the update. Then the watch brings the money into force a moment later.
    this.watch.look(update.tenantId);
    return reply;
  }
}
