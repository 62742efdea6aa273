import { Injectable } from '@nestjs/common';
import { Outbox } from '@tollgate/messaging/nest';
import { PostingLoop } from './posting-loop';

/** Runs after each commit to the books: publishes the balance updates, and posts the usage that is due. */
@Injectable()
export class AfterCommit {
  constructor(
    private readonly outbox: Outbox,
    private readonly loop: PostingLoop,
  ) {}

  /** @param dueInMs until the first usage is due; null if none is */
  committed(dueInMs: number | null = null): void {
    this.outbox.wake();
    if (dueInMs !== null) this.loop.wakeIn(dueInMs);
  }
}
