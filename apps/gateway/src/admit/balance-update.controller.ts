import { Controller } from '@nestjs/common';
import { AdmissionStore, parseBalanceUpdate, validateBalanceUpdate } from '@tollgate/admission';
import type { BalanceUpdate } from '@tollgate/contracts';
import { EventPattern } from '@tollgate/messaging/nest';
import { failPoint } from '@tollgate/runtime';

/**
 * Applies balance updates of billing to the admission store: the balance, the holds to release, and the budgets.
 * Updates may arrive in any order and repeatedly.
 */
@Controller()
export class BalanceUpdateController {
  constructor(private readonly store: AdmissionStore) {}

  @EventPattern('credit-news', 'admission', { validate: validateBalanceUpdate })
  async apply(batch: readonly BalanceUpdate[]): Promise<void> {
    failPoint('balance-applying');
    await this.store.applyBalanceUpdates(batch.map(parseBalanceUpdate));
    failPoint('balance-applied');
  }
}
