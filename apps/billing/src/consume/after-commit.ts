import { Injectable } from '@nestjs/common';
import { BalanceUpdateOutbox } from '../outbox/balance-update-outbox';
import { PostingLoop } from './posting-loop';

/** What follows each commit to the books: its news goes out, and usage that is due is posted. */
@Injectable()
export class AfterCommit {
  constructor(
    private readonly outbox: BalanceUpdateOutbox,
    private readonly loop: PostingLoop,
  ) {}

  /** @param dueInMs until usage of somebody is due; null: of nobody */
  committed(dueInMs: number | null = null): void {
    this.outbox.wake();
    if (dueInMs !== null) this.loop.wakeIn(dueInMs);
  }
}
