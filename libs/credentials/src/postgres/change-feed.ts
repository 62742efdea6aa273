import { Socket } from 'node:net';
import { logger, WakeableDelay } from '@tollgate/runtime';
import { Client, type ClientConfig } from 'pg';
import type { CredentialRecord } from '../credential-store';
import { RECORD_COLUMNS, toRecord, type RecordRow } from './record-row';

/** The maximum delay of a change whose notification was lost, plus or minus a query. Far below the promised second. */
const CHECK_INTERVAL_MS = 300;
const CONNECT_TIMEOUT_MS = 500;
const CHECK_TIMEOUT_MS = 1_000;
const RECONNECT_DELAY_MS = 200;
const MAX_RECORDS_PER_CHECK = 2_000;
/** Sorts after every hash: the position after all records of a change. */
const AFTER_ALL_HASHES = '~';

const CHECK = `
  SELECT last_change.number, changed.*
    FROM last_change LEFT JOIN LATERAL (
      SELECT change, ${RECORD_COLUMNS} FROM credential
       WHERE (change, hash) > ($1::bigint, $2::text) ORDER BY change, hash LIMIT $3) changed ON true
   ORDER BY changed.change, changed.hash`;

type CheckRow = { number: string } & (({ change: string } & RecordRow) | { change: null });

export interface ChangeListener {
  /** Called with the records that were written since the last call, in the order of their changes. */
  changed(records: CredentialRecord[]): void;
  /** Everything that was written before this moment of `performance.now()` has been passed on. */
  upTo(ms: number): void;
  /** The store's number is lower than the last one seen: it was emptied or restored. */
  reset(): void;
}

/**
 * Follows the changes of the store on its own connection. It asks for all changes after the last one seen: on a
 * notification, every CHECK_INTERVAL_MS, and first after a reconnect. A notification only makes it faster; none has to
 * arrive.
 *
 *   connect + LISTEN ─▶ check ─▶ wait (notification or interval) ─▶ check …
 *         ▲                │                 │ error, timeout, connection gone
 *         └──── wait ◀─────┴─────────────────┘
 */
export class ChangeFeed {
  private position = { change: 0, hash: AFTER_ALL_HASHES };
  private socket: Socket | null = null;
  private stopped = false;
  private readonly wakeUp = new WakeableDelay();
  /** Only a stop ends the wait for a new connection. */
  private readonly reconnect = new WakeableDelay();
  private running: Promise<void> = Promise.resolve();

  constructor(
    private readonly config: ClientConfig,
    private readonly listener: ChangeListener,
  ) {}

  /** Rejects when the store cannot be reached. All changes from here on are passed on. */
  async start(): Promise<void> {
    try {
      const client = await this.connect();
      const askedMs = performance.now();
      const { rows } = await client.query<{ number: string }>('SELECT number FROM last_change');
      this.position.change = Number(rows[0]!.number);
      this.listener.upTo(askedMs);
      this.running = this.run(client);
    } catch (error) {
      this.drop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.drop();
    this.wakeUp.wake();
    this.reconnect.wake();
    await this.running;
  }

  private async run(first: Client): Promise<void> {
    let client: Client | null = first;
    let lost = false;
    while (!this.stopped) {
      try {
        client ??= await this.connect();
        await this.check(client);
        if (lost) logger('credentials').info('credential store: connected again, up to date');
        lost = false;
        await this.follow(client);
      } catch (error) {
        if (!lost && !this.stopped)
          logger('credentials').warn(
            { reason: (error as Error).message },
            'credential store: connection lost; look-ups are refused because revocations might be missing',
          );
        lost = true;
      }
      this.drop();
      client = null;
      if (!this.stopped) await this.reconnect.wait(RECONNECT_DELAY_MS);
    }
  }

  private async follow(client: Client): Promise<void> {
    while (!this.stopped) {
      await this.wakeUp.wait(CHECK_INTERVAL_MS);
      if (!this.stopped) await this.check(client);
    }
  }

  private async connect(): Promise<Client> {
    const socket = new Socket();
    const client = new Client({
      ...this.config,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: CHECK_TIMEOUT_MS,
      stream: () => socket,
    });
    this.socket = socket;
    client.on('notification', () => this.wakeUp.wake());
    // The next check fails on the dead connection and opens a new one. After that, its error is old.
    client.on('error', () => this.socket === socket && this.wakeUp.wake());
    await client.connect();
    await client.query('LISTEN tollgate_credentials');
    return client;
  }

  private async check(client: Client): Promise<void> {
    for (;;) {
      const { change, hash } = this.position;
      const askedMs = performance.now();
      const { rows } = await client.query<CheckRow>(CHECK, [change, hash, MAX_RECORDS_PER_CHECK]);
      const number = Number(rows[0]!.number);
      if (number < change) {
        logger('credentials').warn({ seen: change, number }, 'credential store: emptied or restored; memory dropped');
        this.position = { change: number, hash: AFTER_ALL_HASHES };
        this.listener.reset();
        this.listener.upTo(askedMs);
        return;
      }
      const changed = rows.filter((row) => row.change !== null);
      this.listener.changed(changed.map(toRecord));
      const last = changed.at(-1);
      if (!last || changed.length < MAX_RECORDS_PER_CHECK) {
        this.position = { change: number, hash: AFTER_ALL_HASHES };
        this.listener.upTo(askedMs);
        return;
      }
      this.position = { change: Number(last.change), hash: last.hash };
    }
  }

  /** Closes without a protocol exchange, which a dead server would not answer. */
  private drop(): void {
    this.socket?.destroy();
    this.socket = null;
  }
}
