import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import type { Author } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { query } from '@tollgate/postgres';
import { logger, PeriodicTask } from '@tollgate/runtime';
import type { EntityManager } from 'typeorm';
import { ConsoleDataSource } from '../database';

const LOOK_MS = 5_000;
/** The pause between two tries. It is longer than any request that was in progress when the account ended. */
const PAUSE = `interval '1 minute'`;
/** A person who made many changes has many rows. */
const DEADLINE_MS = 10_000;

export interface Erasure {
  userId: string;
  email: string;
  author: Author;
}

/**
 * Makes auth and billing forget people whose accounts are gone. The transaction that deletes the account adds a row.
 * They are asked at once, and again a minute later, when all requests of the person have ended. Only then is the row
 * deleted, so neither a crash nor an unavailable service leaves an erasure incomplete.
 */
@Injectable()
export class Erasures implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly task = new PeriodicTask({
    run: (ending) => this.completeDue(ending),
    failed: (error) =>
      logger('console').warn({ reason: String(error) }, 'pending erasures of accounts failed; retrying'),
    firstMs: LOOK_MS,
    everyMs: LOOK_MS,
    keepsProcess: true,
  });

  constructor(
    private readonly dataSource: ConsoleDataSource,
    private readonly services: ServiceClient,
  ) {}

  onApplicationBootstrap(): void {
    this.task.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.task.stop();
  }

  /** In the transaction that deletes the account. */
  async begin(tx: EntityManager, by: Author, person: { userId: string; email: string }): Promise<Erasure> {
    const author = by.id === person.userId ? { ...by, name: null, address: null } : by;
    await query(
      tx,
      `UPDATE erasure SET author = author || '{"name": null, "address": null}' WHERE author ->> 'id' = $1`,
      [person.userId],
    );
    await query(tx, `INSERT INTO erasure (user_id, email, author, due_at) VALUES ($1, $2, $3, now() + ${PAUSE})`, [
      ...[person.userId, person.email, JSON.stringify(author)],
    ]);
    return { ...person, author };
  }

  /** One try. False: a service is unavailable, and another try follows in any case. */
  async forget({ userId, email, author }: Erasure): Promise<boolean> {
    const options = { deadlineMs: DEADLINE_MS };
    try {
      await Promise.all([
        this.services.request('billing.people.erase', { userId }, options),
        this.services.request('auth.people.erase', { by: author, userId, email }, options),
      ]);
      return true;
    } catch (error) {
      const reason = String(error);
      logger('console').warn(
        { userId, reason },
        "removing an erased person's name from the audit logs is not complete; retrying",
      );
      return false;
    }
  }

  /** Takes each row once: a failed one is due again after the pause. */
  private async completeDue(ending: AbortSignal): Promise<void> {
    while (!ending.aborted) {
      const erasure = await this.take();
      if (!erasure) break;
      if (await this.forget(erasure))
        await query(this.dataSource, 'DELETE FROM erasure WHERE user_id = $1', [erasure.userId]);
    }
  }

  /** If several consoles ask, one gets the row. */
  private async take(): Promise<Erasure | undefined> {
    const [erasure] = await query<Erasure>(
      this.dataSource,
      `UPDATE erasure SET due_at = now() + ${PAUSE} WHERE user_id = (
         SELECT user_id FROM erasure WHERE due_at <= now() ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
       RETURNING user_id AS "userId", email, author`,
    );
    return erasure;
  }
}
