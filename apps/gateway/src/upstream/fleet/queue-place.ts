import type { CatalogModel } from '../../catalog/catalog';
import { queued } from './backend-metrics';
import type { Pool } from './fleet';
import type { Waiting } from './wait-queue';

/** A request's place in the queue of a model, with one time limit for all its waits. */
export class QueuePlace {
  /** 0: it never waited. */
  private untilMs = 0;

  constructor(
    private readonly waiting: Waiting,
    private readonly pool: Pool,
    private readonly model: CatalogModel,
  ) {}

  /** False: the queue is full, or the time is over. */
  take(nowMs: number): boolean {
    const { queue, backends } = this.pool;
    const { maxRequests, maxWaitMs } = this.model.queue;
    this.untilMs ||= nowMs + maxWaitMs;
    const leftMs = this.untilMs - nowMs;
    if (leftMs <= 0 || !queue.add(this.waiting, { maxRequests, maxWaitMs: leftMs })) return false;
    queued.set({ model: this.model.id }, queue.length);
    for (const { engine } of backends) engine.queues.add(queue);
    return true;
  }

  leave(): void {
    if (this.untilMs === 0) return;
    const { queue, backends } = this.pool;
    queue.remove(this.waiting);
    queued.set({ model: this.model.id }, queue.length);
    if (queue.length === 0) for (const { engine } of backends) engine.queues.delete(queue);
  }
}
