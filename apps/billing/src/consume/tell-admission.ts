import { readNews, type AdmissionStore } from '@tollgate/admission';
import type { CreditNews } from '@tollgate/contracts';
import { logger } from '@tollgate/runtime';

/**
 * Tells the admission store at once what was just committed and is on its way as news too: a suspension or a budget is then in force when its change is answered, whatever the topic takes. Never
 * rejects: news may come twice and in any order, and where the store cannot be reached, those of the topic will.
 */
export async function tellAdmission(admission: AdmissionStore, news: readonly CreditNews[]): Promise<void> {
  try {
    await admission.applyNews(news.map(readNews));
  } catch (error) {
    logger('billing').warn({ err: error }, 'the admission store hears of a change by the news alone');
  }
}
