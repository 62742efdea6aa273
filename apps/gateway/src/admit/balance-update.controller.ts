import { Controller } from '@nestjs/common';
import { AdmissionStore, parseBalanceUpdate, validateBalanceUpdate } from '@tollgate/admission';
import type { BalanceUpdate } from '@tollgate/contracts';
import { EventPattern } from '@tollgate/messaging/nest';
import { failPoint } from '@tollgate/runtime';

/**
 * Brings billing's news into the admission store: the balance, the holds that the books have recorded, and the budgets
 * that were set. News may come in any order, and more than once.
 */
@Controller()
export class BalanceUpdateController {
  constructor(private readonly store: AdmissionStore) {}

  @EventPattern('credit-news', 'admission', { validate: validateBalanceUpdate })
  async apply(batch: readonly BalanceUpdate[]): Promise<void> {
    failPoint('news-applying');
    await this.store.applyBalanceUpdates(batch.map(parseBalanceUpdate));
    failPoint('news-applied');
  }
}
