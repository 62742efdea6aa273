import type { AdmitRequest } from '@tollgate/admission';
import type { UsageEvent } from '@tollgate/contracts';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';

/** The number of migrations of each schema in the former version. */
const FORMER_NUMBERS = { auth: 3, metering: 4, billing: 13, admission: 14, credentials: 1 } as const;
export type Schema = keyof typeof FORMER_NUMBERS;

/** Creates the schema of the former version, as the user of this connection. */
export async function makeFormerSchema(client: Client, schema: Schema): Promise<void> {
  const sql = readFileSync(join(__dirname, 'former-version', `${schema}.sql`), 'utf8');
  await client.query(`CREATE SCHEMA ${schema}; SET search_path TO ${schema}, public; ${sql} RESET search_path`);
}

/** Grants the rights that the former version's migrations gave to the service's role. */
export async function giveFormerRights(client: Client, schema: Schema): Promise<void> {
  const sql = readFileSync(join(__dirname, 'former-version', `${schema}.rights.sql`), 'utf8');
  await client.query(`SET search_path TO ${schema}, public; ${sql}; RESET search_path`);
}

/** Calls `work` with the migrations of the former version: only its own numbered files, and no functions. */
export async function asFormerVersion<T>(
  { schema, directory }: { schema: string; directory: string },
  work: (migrations: { schema: string; directory: string }) => Promise<T>,
): Promise<T> {
  const former = mkdtempSync(join(tmpdir(), 'former-'));
  try {
    const kept = readdirSync(directory).filter((name) => Number.parseInt(name, 10) <= FORMER_NUMBERS[schema as Schema]);
    for (const name of kept) cpSync(join(directory, name), join(former, name));
    return await work({ schema, directory: former });
  } finally {
    rmSync(former, { recursive: true });
  }
}

/** The calls of the former version to the admission store, as prepared statements with positional parameters. */
export class FormerAdmission {
  private constructor(private readonly client: Client) {}

  static async open(url: string): Promise<FormerAdmission> {
    const client = new Client({ connectionString: url, options: '-c search_path=admission,public' });
    await client.connect();
    return new FormerAdmission(client);
  }

  close = () => this.client.end();

  async setBalance(tenantId: string, version: number, balanceNanos: bigint, releases: string[] = []): Promise<void> {
    await this.call('apply_news', [
      [tenantId],
      [version],
      [balanceNanos],
      [false],
      releases.map(() => tenantId),
      releases,
    ]);
  }

  /** Returns 'held' or the code of a refusal. */
  async admit({ draft, keyLimits, tenantLimits, ...request }: AdmitRequest): Promise<string> {
    const outputNanos = request.outputFemtosPerToken / 1_000_000n;
    const [row] = await this.call<{ code: string }>('admit', [
      null,
      10_000,
      [draft.id],
      [draft.tenantId],
      [draft.keyId],
      [JSON.stringify(draft)],
      [keyLimits.requestsPerMinute],
      [keyLimits.tokensPerMinute],
      [keyLimits.concurrency],
      [tenantLimits.requestsPerMinute],
      [tenantLimits.tokensPerMinute],
      [tenantLimits.concurrency],
      [request.keyBudgetNanos],
      [request.tenantBudgetNanos],
      [request.promptTokens],
      [request.promptFemtos],
      [request.outputFemtosPerToken],
      [request.wantOutputTokens],
      [request.minOutputTokens],
      [request.boundIsExact],
      [BigInt(request.wantOutputTokens) * outputNanos],
      [outputNanos],
    ]);
    return row!.code;
  }

  async progress(id: string, tenantId: string, delivered: Record<string, unknown>): Promise<void> {
    await this.call('progress', [null, 10_000, [id], [tenantId], [JSON.stringify(delivered)]]);
  }

  async settle(event: UsageEvent): Promise<string> {
    const [year, month] = event.endedAt.split('-').map(Number) as [number, number];
    const [row] = await this.call<{ code: string }>('settle', [
      null,
      [event.id],
      [event.tenantId],
      [event.costNanos],
      [event.promptTokens + event.completionTokens],
      [year * 12 + month - 1],
      [JSON.stringify(event)],
    ]);
    return row!.code;
  }

  private async call<Row extends object>(name: string, values: unknown[]): Promise<Row[]> {
    const text = `SELECT * FROM ${name}(${values.map((_, index) => `$${index + 1}`).join(',')})`;
    return (await this.client.query<Row>({ name, text, values })).rows;
  }
}
