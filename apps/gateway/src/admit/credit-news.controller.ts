import { Controller } from '@nestjs/common';
import { AdmissionStore, readNews, validateNews } from '@tollgate/admission';
import type { CreditNews } from '@tollgate/contracts';
import { EventPattern } from '@tollgate/messaging/nest';
import { failPoint } from '@tollgate/runtime';

/**
 * Brings billing's news into the admission store: the balance, the holds that the books have recorded, and the budgets
 * that were set. News may come in any order, and more than once.
 */
@Controller()
export class CreditNewsController {
  constructor(private readonly store: AdmissionStore) {}

  @EventPattern('credit-news', 'admission', { validate: validateNews })
  async apply(batch: readonly CreditNews[]): Promise<void> {
    failPoint('news-applying');
    await this.store.applyNews(batch.map(readNews));
    failPoint('news-applied');
  }
}
