import { eventually } from '@tollgate/testing';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import type { Deployment } from '../services/deployment';
import { operate } from '../services/first-steps';
import type { ServiceProcess } from '../services/service-process';
import { MachineWaits } from './machine-waits';

const PROMPT_TOKEN_NANOS = 50_000n;
export const OUTPUT_TOKEN_NANOS = 200_000n;
const REQUEST_TIMEOUT_MS = 30_000;
const MODEL = 'sim-large';
/** Budget of the profile "tight". */
export const BUDGET_CENTS = 2;

const WIDE = '{ requestsPerMinute: 1000000, tokensPerMinute: 100000000, concurrency: 1000 }';

/** Writes a configuration with wide limits and one profile with a budget. Returns the path of the file. */
export function writeConfig(): string {
  const file = join(mkdtempSync(join(tmpdir(), 'tollgate-recovery-')), 'tollgate.yaml');
  writeFileSync(
    file,
    `models:
  - { id: ${MODEL}, kind: chat, contextTokens: 131072, maxOutputTokens: 16384,
      price: { input: '50', output: '200' }, backends: [{ url: 'simulator:' }] }
plans:
  - id: default
    limits: ${WIDE}
    profiles:
      - { id: default, models: ['*'], limits: ${WIDE} }
      - { id: tight, models: ['*'], limits: ${WIDE}, monthlyBudgetCents: ${BUDGET_CENTS} }
`,
  );
  return file;
}

export interface Tenant {
  id: string;
  key: string;
  keyId: string;
  token: string;
}

export interface Answer {
  status: number;
  retryAfter: string | null;
  /** The code of an error. */
  code: string | null;
  /** The id of a complete answer, and the cost of the reported usage. */
  id: string | null;
  costNanos: bigint;
  tookMs: number;
}

interface ChatOptions {
  stream?: boolean;
  tokens?: number;
  tokensPerSecond?: number;
}

export const SETTLED_LIMIT_MS = 20_000;

/** Expects success or "try again", never a refusal for the key or the credit. */
export function expectDoneOrLater({ status, code, retryAfter }: Answer): void {
  expect([status, code]).toEqual([expect.any(Number), status === 200 ? null : 'overloaded_error']);
  if (status !== 200) expect([status, Number(retryAfter) >= 1]).toEqual([503, true]);
}

/** Uses the APIs of running gateways, and reads the books. */
export class Deployed {
  constructor(
    private readonly deployment: Deployment,
    readonly gateways: readonly ServiceProcess[],
  ) {}

  operator<T>(path: string, body: unknown): Promise<T> {
    return operate<T>(this.gateways[0]!, path, body);
  }

  issueKey(tenantId: string, more: object = {}): Promise<{ id: string; key: string }> {
    return this.operator(`/tenants/${tenantId}/keys`, { name: 'test', ...more });
  }

  async newTenant({ cents = 1_000, ...key }: { cents?: number; profile?: string } = {}): Promise<Tenant> {
    const { id } = await this.operator<{ id: string }>('/tenants', { name: 'Acme' });
    const { key: value, id: keyId } = await this.issueKey(id, key);
    const scopes = ['keys:read', 'keys:write', 'usage:read', 'billing:read', 'tokens:read'];
    const { token } = await this.operator<{ token: string }>(`/tenants/${id}/tokens`, { name: 'test', scopes });
    await this.operator(`/tenants/${id}/credit`, { amountCents: cents, source: 'manual', ref: id });
    return { id, key: value, keyId, token };
  }

  /** Creates a tenant and waits until its credit is in force. */
  async tenantWithCredit(options: Parameters<Deployed['newTenant']>[0] = {}): Promise<Tenant & { answers: Answer[] }> {
    const tenant = await this.newTenant(options);
    const answers: Answer[] = [];
    await eventually(
      async () => {
        const answer = await this.chat(tenant.key);
        expect(answer.status).toBe(200);
        answers.push(answer);
      },
      { timeoutMs: SETTLED_LIMIT_MS },
    );
    return { ...tenant, answers };
  }

  /** Begins to measure how long the machine keeps requests waiting at the first gateway. */
  machineWaits(): MachineWaits {
    return new MachineWaits(this.gateways[0]!.addresses.health);
  }

  /** Sends a request. The caller reads the answer. */
  open(
    key: string,
    { stream = false, tokens = 10, tokensPerSecond = 0 }: ChatOptions = {},
    gateway = this.gateways[0]!,
  ): Promise<Response> {
    return fetch(`${gateway.addresses.publicUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: MODEL,
        messages: [{ role: 'user', content: 'Hello' }],
        max_tokens: tokens,
        stream,
        simulator: { answerTokens: tokens, ...(tokensPerSecond ? { tokensPerSecond } : {}) },
      }),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    });
  }

  async chat(key: string, options: ChatOptions = {}, gateway = this.gateways[0]!): Promise<Answer> {
    const from = performance.now();
    const response = await this.open(key, options, gateway);
    const text = await response.text();
    const { id, usage, error } = read(text);
    const complete =
      usage !== undefined && error === undefined && (!options.stream || text.trimEnd().endsWith('data: [DONE]'));
    return {
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
      code: error?.code ?? null,
      id: complete ? id!.replace('chatcmpl-', 'req_') : null,
      costNanos: complete
        ? BigInt(usage.prompt_tokens) * PROMPT_TOKEN_NANOS + BigInt(usage.completion_tokens) * OUTPUT_TOKEN_NANOS
        : 0n,
      tookMs: performance.now() - from,
    };
  }

  async query<T>(sql: string, values: unknown[] = []): Promise<T[]> {
    const client = new Client({ connectionString: this.deployment.postgres.url });
    await client.connect();
    try {
      return (await client.query(sql, values)).rows as T[];
    } finally {
      await client.end();
    }
  }

  /** Expects that every complete answer is charged once at its cost, that nothing else is, and that debits match. */
  async expectCharged(tenantId: string, answers: readonly Answer[]): Promise<void> {
    const complete = answers.filter(({ id }) => id !== null);
    const charges = await this.query<{ id: string; cost: string }>(
      'SELECT id, cost_nanos::text AS cost FROM billing.charge WHERE tenant_id = $1 ORDER BY id',
      [tenantId],
    );
    expect(charges).toEqual(
      complete.map(({ id, costNanos }) => ({ id, cost: String(costNanos) })).sort((a, b) => (a.id! < b.id! ? -1 : 1)),
    );
    const [books] = await this.query<{ posted: string }>(
      `SELECT (gathered_nanos + carried_nanos - 10000000 * coalesce(
                (SELECT sum(amount_cents) FROM billing.journal_entry e
                 WHERE e.tenant_id = b.tenant_id AND type = 'usage'), 0))::text AS posted
         FROM billing.tenant_books b WHERE tenant_id = $1`,
      [tenantId],
    );
    expect(BigInt(books?.posted ?? 0)).toBe(complete.reduce((sum, { costNanos }) => sum + costNanos, 0n));
  }

  empty(): Promise<string> {
    return this.redisCli('FLUSHALL');
  }

  redisCli(...command: string[]): Promise<string> {
    const { redis } = this.deployment;
    return redis.exec(['redis-cli', '-p', String(redis.port), ...command]);
  }
}

interface Body {
  id?: string;
  usage?: { prompt_tokens: number; completion_tokens: number };
  error?: { code: string };
}

/** Reads an answer. The chunks of a stream are merged. */
function read(text: string): Body {
  if (!text.startsWith('data:')) return JSON.parse(text) as Body;
  const chunks = text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as Body);
  return Object.assign({}, ...chunks) as Body;
}
