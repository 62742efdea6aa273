import { Injectable } from '@nestjs/common';
import { type DrainedBackend, MAX_BACKEND_NAME_CHARS, RequestError, type RequestOf } from '@tollgate/contracts';
import { query, recordChange, transaction } from '@tollgate/postgres';
import { AuthDataSource } from '../database';

interface Row {
  backend: string;
  drained_at: Date;
}

/**
 * `auth.backends.*`: which backends are drained. Each gateway asks for the list once a second, so a change is in force
 * everywhere about a second after its answer, and after a restart too.
 */
@Injectable()
export class DrainedBackends {
  constructor(private readonly dataSource: AuthDataSource) {}

  /** Ascending by name. */
  async list(): Promise<{ drained: DrainedBackend[] }> {
    const rows = await query<Row>(this.dataSource, 'SELECT backend, drained_at FROM drained_backend ORDER BY backend');
    return { drained: rows.map(toDrained) };
  }

  /** A repeat keeps the first `drainedAt`. RequestError invalid_backend. */
  async drain({ backend, by }: RequestOf<'auth.backends.drain'>): Promise<DrainedBackend> {
    if (backend.length === 0 || backend.length > MAX_BACKEND_NAME_CHARS || backend.includes('\0'))
      throw new RequestError('invalid_backend');
    return transaction(this.dataSource, async (tx) => {
      // Nobody drains or enables the same backend meanwhile.
      await query(tx, 'LOCK TABLE drained_backend IN SHARE ROW EXCLUSIVE MODE');
      const [added] = await query<Row>(
        tx,
        `INSERT INTO drained_backend (backend, drained_at) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING *`,
        [backend, new Date()],
      );
      if (!added) {
        const [known] = await query<Row>(tx, 'SELECT * FROM drained_backend WHERE backend = $1', [backend]);
        return toDrained(known!);
      }
      const row = toDrained(added);
      const change = { before: { drainedAt: null }, after: { drainedAt: row.drainedAt } };
      await recordChange(tx, by, { action: 'backend.drain', target: backend, ...change });
      return row;
    });
  }

  /** A repeat changes nothing. */
  async enable({ backend, by }: RequestOf<'auth.backends.enable'>): Promise<{ backend: string }> {
    return transaction(this.dataSource, async (tx) => {
      const [gone] = await query<Row>(tx, 'DELETE FROM drained_backend WHERE backend = $1 RETURNING *', [backend]);
      if (gone) {
        const change = { before: { drainedAt: toDrained(gone).drainedAt }, after: { drainedAt: null } };
        await recordChange(tx, by, { action: 'backend.enable', target: backend, ...change });
      }
      return { backend };
    });
  }
}

function toDrained({ backend, drained_at: at }: Row): DrainedBackend {
  return { backend, drainedAt: at.toISOString() };
}
