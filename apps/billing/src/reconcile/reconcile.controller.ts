import { Controller } from '@nestjs/common';
import type { JournalHead, Page, PageQuery, ReconcileRun, ReplyOf, RequestOf } from '@tollgate/contracts';
import { MessagePattern } from '@tollgate/messaging/nest';
import { BillingDataSource } from '../database';
import { compareHeads, journalHeads } from './heads';
import { ReconcileRuns } from './runs';

@Controller()
export class ReconcileController {
  constructor(
    private readonly runs: ReconcileRuns,
    private readonly dataSource: BillingDataSource,
  ) {}

  @MessagePattern('billing.reconcile.start')
  start({ by }: RequestOf<'billing.reconcile.start'>): Promise<{ id: string }> {
    return this.runs.start(by);
  }

  @MessagePattern('billing.reconcile.get')
  get(request: RequestOf<'billing.reconcile.get'>): Promise<ReconcileRun> {
    return this.runs.get(request);
  }

  @MessagePattern('billing.reconcile.latest')
  async latest(): Promise<ReplyOf<'billing.reconcile.latest'>> {
    return { run: await this.runs.latest() };
  }

  @MessagePattern('billing.journal.heads')
  heads(query: PageQuery): Promise<Page<JournalHead>> {
    return journalHeads(this.dataSource, query);
  }

  @MessagePattern('billing.journal.compare')
  compare(request: RequestOf<'billing.journal.compare'>): Promise<ReplyOf<'billing.journal.compare'>> {
    return compareHeads(this.dataSource, request);
  }
}
