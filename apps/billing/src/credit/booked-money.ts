import { AdmissionStore } from '@tollgate/admission';
import { Inject, Injectable } from '@nestjs/common';
import type { BalanceUpdate } from '@tollgate/contracts';
import { AfterCommit } from '../consume/after-commit';
import { tellBooked } from '../consume/tell-admission';
import { PoisonWatch } from '../repair/poison-watch';

/** Money is in force when it is answered: a request that comes after the answer runs on it. */
@Injectable()
export class BookedMoney {
  constructor(
    private readonly after: AfterCommit,
    private readonly admission: AdmissionStore,
    @Inject(PoisonWatch) private readonly watch: PoisonWatch | null,
  ) {}

  /** The reply of what was booked, once the admission store has heard of it. */
  async inForce<T>(work: Promise<{ reply: T; dueInMs: number | null; news: BalanceUpdate }>): Promise<T> {
    const { reply, dueInMs, news } = await work;
    this.after.committed(dueInMs);
    await tellBooked(this.admission, news);
    // Money that a forged version keeps from being heard of is in force a moment later.
    this.watch?.look(news.tenantId);
    return reply;
  }
}
