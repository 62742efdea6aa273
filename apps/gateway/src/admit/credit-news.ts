import { Injectable, type OnModuleInit } from '@nestjs/common';
import { AdmissionStore, readNews, whyNotNews } from '@tollgate/admission';
import { Messages } from '@tollgate/messaging';
import { failPoint } from '@tollgate/runtime';

/** Brings billing's news into the admission store: the balance, the holds that the books have taken in, and budgets that were set. Any order, any repeat. */
@Injectable()
export class CreditNewsConsumer implements OnModuleInit {
  constructor(
    private readonly messages: Messages,
    private readonly store: AdmissionStore,
  ) {}

  onModuleInit(): void {
    this.messages.consume(
      'credit-news',
      'admission',
      async (news) => {
        failPoint('news-applying');
        await this.store.applyNews(news.map(readNews));
        failPoint('news-applied');
      },
      { whyNot: whyNotNews },
    );
  }
}
