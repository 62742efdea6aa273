import { withDatabase as databaseUrl } from '@tollgate/testing';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import type { Database, Deployment, Ready } from './deployment';
import { connected, embedded, everyRow, writeConfig } from './fixtures';
import { StandaloneProcess, stopPostgres, useDataDirectory } from './standalone-process';

export interface StandaloneOptions {
  env?: Record<string, string>;
  /** `shipped` is the tollgate.yaml that users get. */
  config?: 'shipped';
  /** Several processes share one PostgreSQL. */
  processes?: number;
}

/** The standalone form, started before the tests of the calling file and removed after them. */
export function useStandalone(options: StandaloneOptions = {}): Deployment {
  const directory = useDataDirectory();
  const standalone = new StandaloneDeployment(directory, options);
  beforeAll(() => standalone.create());
  afterAll(() => standalone.remove());
  return standalone;
}

type Running = StandaloneProcess & { ready: Ready };

class StandaloneDeployment implements Deployment {
  readonly database: Database;
  private readonly processes: (Running | undefined)[] = [];
  /** The name of the shared database on the server of the tests. */
  private readonly sharedName: string | undefined;
  private demo: Ready['demo'];
  private logged = '';

  constructor(
    private readonly directory: { path: string },
    private readonly options: StandaloneOptions,
  ) {
    const { processes = 1 } = options;
    this.processes.length = processes;
    this.sharedName = processes > 1 ? `e2e_${process.pid}` : undefined;
    this.database = (work) =>
      this.sharedName === undefined
        ? embedded(directory.path)(work)
        : connected({ connectionString: this.sharedUrl(this.sharedName) }, work);
  }

  get ready(): Ready {
    const { ready } = this.running()[0]!;
    return { ...ready, ...(this.demo ? { demo: this.demo } : {}) };
  }

  get gateways(): readonly Ready[] {
    return this.running().map(({ ready }) => ready);
  }

  async create(): Promise<void> {
    if (this.sharedName !== undefined) await this.admin(`CREATE DATABASE ${this.sharedName}`);
    await this.start();
  }

  async start(): Promise<Ready> {
    const started: Running[] = [];
    await Promise.all(
      Array.from(this.processes, async (running, index) => {
        if (running?.child.exitCode === null && running.child.signalCode === null) return;
        this.logged += running?.stderr ?? '';
        const next = (this.processes[index] = await StandaloneProcess.start(this.env(index)));
        started.push(next);
      }),
    );
    const withDemo = started.filter(({ ready }) => ready.demo);
    if (withDemo.length > 1) throw new Error('there is more than one demo');
    this.demo ??= withDemo[0]?.ready.demo;
    return (withDemo[0] ?? started[0]!).ready;
  }

  async stop(): Promise<void> {
    const codes = await Promise.all(this.running().map((running) => running.end()));
    if (codes.some((code) => code !== 0)) throw new Error(`it ended with ${codes.join(', ')}`);
  }

  async kill(servers: 'servers live on' | 'servers end'): Promise<void> {
    await Promise.all(this.running().map((running) => running.end('SIGKILL')));
    if (servers === 'servers end') await stopPostgres(this.directory.path);
  }

  async killGateway(index: number): Promise<void> {
    await this.running()[index]!.end('SIGKILL');
  }

  /** Keeps a copy of each message in a table, because handled messages are deleted. */
  keepMessages(): Promise<void> {
    return this.database(async (client) => {
      await client.query(`CREATE TABLE public.seen_message (text text)`);
      await client.query(`CREATE FUNCTION public.keep() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
        $$ BEGIN INSERT INTO public.seen_message VALUES (NEW::text); RETURN NEW; END $$`);
      for (const table of ['messages.batch', 'metering.outbox', 'billing.outbox', 'admission.hold'])
        await client.query(`CREATE TRIGGER keep AFTER INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION public.keep()`);
    });
  }

  async contents(): Promise<string[]> {
    const rows = await this.database(everyRow);
    return rows.map((row) => row.replace(/^public\.seen_message:/, 'message:'));
  }

  logs(): Promise<string> {
    return Promise.resolve(
      this.logged +
        this.running()
          .map(({ stderr }) => stderr)
          .join(''),
    );
  }

  /** Runs after the hook of the directory, when all processes have ended. */
  async remove(): Promise<void> {
    if (this.sharedName === undefined) return;
    await this.admin(`DROP DATABASE ${this.sharedName} WITH (FORCE)`);
  }

  private env(index: number): Record<string, string> {
    const { path } = this.directory;
    const dataDirectory = index === 0 ? path : join(path, `process-${index}`);
    mkdirSync(dataDirectory, { recursive: true });
    return {
      TOLLGATE_DATA_DIR: dataDirectory,
      ...(this.options.config === 'shipped' ? {} : { TOLLGATE_CONFIG: writeConfig(dataDirectory) }),
      ...(this.sharedName === undefined ? {} : this.shared(this.sharedName)),
      ...this.options.env,
    };
  }

  private running(): Running[] {
    return this.processes.map((running) => {
      if (!running) throw new Error('not started: it runs from beforeAll to afterAll');
      return running;
    });
  }

  /** What processes on one database have in common. */
  private shared(name: string): Record<string, string> {
    return {
      DATABASE_URL: this.sharedUrl(name),
      TOLLGATE_IDEMPOTENCY_SECRETS: 'the-secret-of-answers-in-all-processes',
    };
  }

  private sharedUrl(name: string): string {
    return databaseUrl(process.env['TOLLGATE_TEST_DATABASE_URL']!, name);
  }

  private admin(sql: string): Promise<void> {
    return connected({ connectionString: process.env['TOLLGATE_TEST_DATABASE_URL']! }, async (client: Client) => {
      await client.query(sql);
    });
  }
}
