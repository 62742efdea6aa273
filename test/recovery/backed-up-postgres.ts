import { eventually, type PostgresOptions, type PostgresServer } from '@tollgate/testing';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Client } from 'pg';

/**
 * All on the volume of the container. The server archives to a folder that it makes, as it would to another machine.
 */
const ROOT = '/var/lib/postgresql/data';
const [DATA, LOST, BACKUP, ARCHIVE] = ['pgdata', 'lost', 'backup', 'archive'].map((name) => `${ROOT}/${name}`) as [
  string,
  string,
  string,
  string,
];
const REPAIR = 'deploy/postgres/after-restore.sql';
const REPAIR_IN_CONTAINER = '/after-restore.sql';

/** A server that archives its write-ahead log. */
export const ARCHIVING: PostgresOptions = {
  dataDirectory: DATA,
  settings: {
    archive_mode: 'on',
    archive_command: `mkdir -p ${ARCHIVE} && test ! -f ${ARCHIVE}/%f && cp %p ${ARCHIVE}/%f`,
  },
  files: { [REPAIR_IN_CONTAINER]: readFileSync(join(resolve(__dirname, '../..'), REPAIR), 'utf8') },
};

/** Backs up a server with the settings ARCHIVING, and restores it, by the tools that come with PostgreSQL. */
export class BackedUpPostgres {
  constructor(private readonly server: PostgresServer) {}

  async query<T>(sql: string, values: unknown[] = []): Promise<T[]> {
    const client = new Client({ connectionString: this.server.url });
    await client.connect();
    try {
      return (await client.query(sql, values)).rows as T[];
    } finally {
      await client.end();
    }
  }

  async backUp(): Promise<void> {
    const port = String(this.server.port);
    await this.server.exec([
      'pg_basebackup',
      '-U',
      'postgres',
      '-p',
      port,
      '-D',
      BACKUP,
      '--checkpoint=fast',
      '-Xnone',
    ]);
    await this.server.exec(['chown', '-R', 'postgres:postgres', BACKUP]);
  }

  /** Names this moment, so that a restore can end at it exactly. */
  async nameMoment(name: string): Promise<void> {
    await this.query('SELECT pg_create_restore_point($1)', [name]);
  }

  /** Waits until everything written so far is in the archive. */
  async archived(): Promise<void> {
    const [segment] = await this.query<{ name: string }>('SELECT pg_walfile_name(pg_switch_wal()) AS name');
    await eventually(async () => {
      const [archiver] = await this.query<{ last: string }>('SELECT last_archived_wal AS last FROM pg_stat_archiver');
      // Their names are in the order of time.
      expect(archiver!.last >= segment!.name).toBe(true);
    });
  }

  /** Loses the data and the server at once, and restores the back-up to the moment. Returns when it can be written. */
  async loseAndRestore(moment: string): Promise<void> {
    const settings = [
      `restore_command = 'cp ${ARCHIVE}/%f %p'`,
      `recovery_target_name = '${moment}'`,
      `recovery_target_action = 'promote'`,
    ];
    const script = [
      ...settings.map((line) => `echo "${line}" >> ${BACKUP}/postgresql.auto.conf`),
      `touch ${BACKUP}/recovery.signal`,
      `chown postgres:postgres ${BACKUP}/recovery.signal`,
      `mv ${DATA} ${LOST}`,
      `mv ${BACKUP} ${DATA}`,
    ];
    await this.server.exec(['sh', '-ec', script.join('\n')]);
    await this.server.kill();
    await this.server.start();
    await eventually(async () => {
      const [server] = await this.query<{ restoring: boolean }>('SELECT pg_is_in_recovery() AS restoring');
      expect(server!.restoring).toBe(false);
    });
  }

  /** Runs the repair as an operator does. Returns what psql printed. */
  repair(): Promise<string> {
    const port = String(this.server.port);
    return this.server.exec(['psql', '-U', 'postgres', '-p', port, '-d', 'tollgate', '-f', REPAIR_IN_CONTAINER]);
  }
}
