import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, type ClientConfig } from 'pg';
import { startEmbeddedPostgres } from '@tollgate/postgres';
import { eventually, onceServed } from '@tollgate/testing';
import { operator, type Database, type Ready } from './deployment';

/** Time for a message through all services on a busy machine. */
const ARRIVAL_TIMEOUT_MS = 20_000;

/** The nanos per token of `sim` and of the shipped `sim-embed`. */
export const PRICE = { input: 5_000, output: 20_000, embedding: 20 };

const LIMITS = '{ requestsPerMinute: 1000000, tokensPerMinute: 1000000000, concurrency: 10000 }';
const MODEL = `
  - id: sim
    kind: chat
    contextTokens: 100000
    maxOutputTokens: 4096
    price: { input: '5', output: '20' }
    backends: [{ url: 'simulator:' }]
`;
const PLANS = `
plans:
  - id: default
    limits: ${LIMITS}
    profiles:
      - { id: default, limits: ${LIMITS} }
      - { id: slow, limits: { requestsPerMinute: 10, tokensPerMinute: 1000000, concurrency: 4 } }
`;

/**
 * Writes a tollgate.yaml with the models that the code below `root` ships and `sim`, and with wide limits. The profile
 * `slow` allows 10 requests a minute, 4 at once.
 */
export function writeConfig(directory: string, root = join(__dirname, '../..')): string {
  const shipped = readFileSync(join(root, 'tollgate.yaml'), 'utf8');
  const file = join(directory, 'tollgate.yaml');
  writeFileSync(file, shipped.replace(/\nplans:[^]*/, PLANS).replace('models:\n', `models:${MODEL}`));
  return file;
}

export interface TestTenant {
  id: string;
  key: string;
  keyId: string;
}

/** Repeats a safe call until its answer is not 503. Returns the body. */
export function answered<T>(ask: () => Promise<{ status: number; body: T }>, status: number): Promise<T> {
  return expectStatus(onceServed(ask), status);
}

/** Creates a tenant with credit and a key through the operator API. Returns when they are usable. */
export async function createTenant(ready: Ready, creditCents: number, profile?: string): Promise<TestTenant> {
  const api = operator(ready);
  const tenant = await answered(
    () => api.post<{ data: { id: string } }>('/_operator/v1/tenants', { name: 'test' }),
    201,
  );
  const path = `/_operator/v1/tenants/${tenant.data.id}`;
  const fields = { name: 'test', ...(profile ? { profile } : {}) };
  const key = await answered(() => api.post<{ data: { id: string; key: string } }>(`${path}/keys`, fields), 201);
  if (creditCents > 0) {
    await answered(() => api.post(`${path}/credit`, { amountCents: creditCents, ref: 'first' }), 201);
    await eventually(
      async () => {
        // The first answer other than 402 shows that the credit has reached admission. The body is invalid, so it costs
        // nothing.
        const probe = await complete(ready, key.data.key, {
          messages: [{ role: 'user', content: 'x' }],
          max_tokens: 1,
          simulator: { faults: [{ kind: 'status', status: 400 }] },
        });
        expect(probe.status).toBe(400);
      },
      { timeoutMs: ARRIVAL_TIMEOUT_MS },
    );
  }
  return { id: tenant.data.id, key: key.data.key, keyId: key.data.id };
}

/** The tenant with another key. */
export async function withSecondKey(ready: Ready, { id }: TestTenant): Promise<TestTenant> {
  const path = `/_operator/v1/tenants/${id}/keys`;
  const ask = () => operator(ready).post<{ data: { id: string; key: string } }>(path, { name: 'second' });
  const { id: keyId, key } = (await answered(ask, 201)).data;
  return { id, keyId, key };
}

export async function expectStatus<T>(answer: Promise<{ status: number; body: T }>, status: number): Promise<T> {
  const { status: actual, body } = await answer;
  if (actual !== status) throw new Error(`expected ${status}, got ${actual}: ${JSON.stringify(body)}`);
  return body;
}

export interface Completion {
  status: number;
  /** The request id from the answer's own id, or empty if refused. */
  requestId: string;
  promptTokens: number;
  completionTokens: number;
  /** In a stream, it is on the chunk with the usage, the last one before `[DONE]`. */
  finishReason: string | null;
  code: string | null;
}

/**
 * One chat as a client sees it. Resolves when the answer is complete. Rejects if the connection breaks.
 * @param begun called with the status when the headers have arrived
 */
export async function complete(
  ready: Ready,
  key: string,
  body: Record<string, unknown>,
  begun: (status: number) => void = () => {},
): Promise<Completion> {
  const response = await fetch(`${ready.inferenceUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sim', ...body }),
  });
  begun(response.status);
  const text = await response.text();
  const failed = (code: string | null) => ({
    status: response.status,
    requestId: '',
    promptTokens: 0,
    completionTokens: 0,
    finishReason: null,
    code,
  });
  if (!response.ok) return failed((JSON.parse(text) as { error: { code: string | null } }).error.code);
  let answer = text;
  if (body['stream']) {
    const events = text.split('\n\n').filter((event) => event.startsWith('data: '));
    if (events.at(-1) !== 'data: [DONE]') throw new Error('the stream ended without [DONE]');
    answer = events.at(-2)!.slice('data: '.length);
  }
  const parsed = JSON.parse(answer) as {
    id?: string;
    usage?: { prompt_tokens: number; completion_tokens: number };
    choices?: { finish_reason: string | null }[];
    error?: { code: string };
  };
  if (parsed.error) return failed(parsed.error.code);
  return {
    status: response.status,
    requestId: parsed.id!.replace('chatcmpl-', 'req_'),
    promptTokens: parsed.usage!.prompt_tokens,
    completionTokens: parsed.usage!.completion_tokens,
    finishReason: parsed.choices![0]!.finish_reason,
    code: null,
  };
}

export function costOf({ promptTokens, completionTokens }: Completion): number {
  return promptTokens * PRICE.input + completionTokens * PRICE.output;
}

/** The embedded server of a data directory that Tollgate is using. */
export function embedded(dataDirectory: string): Database {
  return (work) => {
    const password = readFileSync(join(dataDirectory, 'postgres.password'), 'utf8').trim();
    const sockets = readFileSync(join(dataDirectory, 'postgres', 'postmaster.pid'), 'utf8').split('\n')[4]!;
    return connected({ host: sockets, port: 5432, user: 'postgres', password, database: 'tollgate' }, work);
  };
}

/** The embedded server of an unused data directory. */
export async function withStoppedDatabase<T>(dataDirectory: string, work: (client: Client) => Promise<T>): Promise<T> {
  const server = await startEmbeddedPostgres({ dataDirectory });
  try {
    return await embedded(dataDirectory)(work);
  } finally {
    await server.stop();
  }
}

export async function connected<T>(config: ClientConfig, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client(config);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** All rows of all tables, each with the name of its table before it. */
export async function everyRow(client: Client): Promise<string[]> {
  const { rows: tables } = await client.query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
     WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
  );
  if (tables.length < 15) throw new Error('some tables are missing');
  const lines: string[] = [];
  for (const { name } of tables) {
    const { rows } = await client.query<{ text: string }>(`SELECT t::text AS text FROM ${name} t`);
    lines.push(...rows.map(({ text }) => `${name}: ${text}`));
  }
  return lines;
}

export interface Books {
  /** Nanos by request id. */
  charges: Map<string, number>;
  debitCents: number;
  balanceCents: number;
  /** The charges that no ledger entry covers yet, plus the remainder below a cent. */
  carriedNanos: number;
  /** The number of charges in more than one entry. */
  coveredTwice: number;
}

/** Reads a tenant's books directly from the tables. */
export function ledgerOf(database: Database, tenantId: string): Promise<Books> {
  return database((client) => ledgerIn(client, tenantId));
}

/** As ledgerOf, on an open connection. */
export async function ledgerIn(client: Client, tenantId: string): Promise<Books> {
  const all = async <T extends object>(sql: string) => (await client.query<T>(sql, [tenantId])).rows;
  const covering = `LEFT JOIN billing.coverage v
      ON v.tenant_id = c.tenant_id AND v.period = c.period AND c.seq BETWEEN v.from_seq AND v.to_seq`;
  const charges = await all<{ id: string; cost_nanos: string; coverings: string }>(
    `SELECT c.id, c.cost_nanos, count(v.number) AS coverings FROM billing.charge c ${covering}
        WHERE c.tenant_id = $1 GROUP BY c.id`,
  );
  const [entries] = await all<{ debits: string; balance: string }>(
    `SELECT coalesce(-sum(amount_cents) FILTER (WHERE type = 'usage'), 0) AS debits,
              coalesce(sum(amount_cents), 0) AS balance
         FROM billing.journal_entry WHERE tenant_id = $1`,
  );
  const [last] = await all<{ remainder: string }>(
    `SELECT carried_out_nanos AS remainder FROM billing.coverage WHERE tenant_id = $1 ORDER BY number DESC LIMIT 1`,
  );
  const uncovered = charges.filter((charge) => Number(charge.coverings) === 0);
  return {
    charges: new Map(charges.map((charge) => [charge.id, Number(charge.cost_nanos)])),
    debitCents: Number(entries!.debits),
    balanceCents: Number(entries!.balance),
    carriedNanos: Number(last?.remainder ?? 0) + uncovered.reduce((sum, charge) => sum + Number(charge.cost_nanos), 0),
    coveredTwice: charges.filter((charge) => Number(charge.coverings) > 1).length,
  };
}

/** Waits until this many requests are running at these gateways together, by their own metrics. */
export async function underWay(gateways: readonly Ready[], count: number): Promise<void> {
  await eventually(
    async () => {
      const scraped = gateways.map(async ({ operatorUrl, metricsToken }) => {
        const headers = metricsToken === undefined ? {} : { authorization: `Bearer ${metricsToken}` };
        return (await fetch(`${new URL(operatorUrl).origin}/metrics`, { headers })).text();
      });
      const counts = (await Promise.all(scraped)).map((text) => /^tollgate_requests_in_flight (\d+)$/m.exec(text)![1]);
      expect(counts.reduce((sum, one) => sum + Number(one), 0)).toBe(count);
    },
    { timeoutMs: ARRIVAL_TIMEOUT_MS },
  );
}
