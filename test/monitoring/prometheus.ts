import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, freePort } from '@tollgate/testing';
import { stringify } from 'yaml';
import { MONITORING } from './files';

const READY_TIMEOUT_MS = 60_000;
const SHOWN_CHARS = 2_000;

/** What is scraped: the address of a page with its bearer token. */
export interface Scraped {
  url: string;
  token: string;
}

interface Sample {
  metric: Record<string, string>;
  value: [number, string];
}

/** A real Prometheus with the rules of deploy/monitoring, which scrapes once a second. */
export class Prometheus {
  private readonly folder = mkdtempSync(join(tmpdir(), 'tollgate-prometheus-'));
  private child: ChildProcess | undefined;
  private url = '';
  private output = '';

  async start({ url, token }: Scraped): Promise<void> {
    const config = join(this.folder, 'prometheus.yml');
    writeFileSync(
      config,
      stringify({
        global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
        rule_files: ['rules', 'alerts'].map((file) => join(MONITORING, `${file}.yaml`)),
        scrape_configs: [
          {
            job_name: 'tollgate',
            authorization: { credentials: token },
            static_configs: [{ targets: [new URL(url).host] }],
          },
        ],
      }),
    );
    const address = `127.0.0.1:${await freePort()}`;
    this.url = `http://${address}`;
    const args = [
      `--config.file=${config}`,
      `--web.listen-address=${address}`,
      `--storage.tsdb.path=${this.folder}/data`,
    ];
    this.child = spawn('prometheus', args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const note = (chunk: Buffer) => (this.output = (this.output + chunk.toString()).slice(-SHOWN_CHARS));
    this.child.stdout!.on('data', note);
    this.child.stderr!.on('data', note);
    await eventually(
      async () => {
        if (this.child?.exitCode != null) throw new Error(`Prometheus ended:\n${this.output}`);
        expect((await fetch(`${this.url}/-/ready`)).status).toBe(200);
      },
      { timeoutMs: READY_TIMEOUT_MS },
    );
  }

  /** The result of a query now. Rejects with Prometheus's own error. */
  async query(expr: string): Promise<Sample[]> {
    const { result } = await this.get<{ result: Sample[] }>(`query?query=${encodeURIComponent(expr)}`);
    return result;
  }

  /** The value of a query with one result. */
  async value(expr: string): Promise<number> {
    const result = await this.query(expr);
    if (result.length !== 1) throw new Error(`${expr} has ${result.length} results`);
    return Number(result[0]!.value[1]);
  }

  /** Each rule with its health, and of an alert its state. */
  async rules(): Promise<{ name: string; health: string; state?: string; lastError?: string }[]> {
    interface Group {
      rules: { name: string; health: string; state?: string; lastError?: string }[];
    }
    const { groups } = await this.get<{ groups: Group[] }>('rules');
    return groups.flatMap(({ rules }) => rules);
  }

  async stop(): Promise<void> {
    const { child } = this;
    if (child?.exitCode === null) {
      const ended = new Promise((done) => child.once('exit', done));
      child.kill('SIGTERM');
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async get<T>(path: string): Promise<T> {
    const answer = await fetch(`${this.url}/api/v1/${path}`);
    const body = (await answer.json()) as { status: string; error?: string; data: T };
    if (body.status !== 'success') throw new Error(`${path}: ${body.error}`);
    return body.data;
  }
}
