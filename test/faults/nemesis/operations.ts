import { withTimeout } from '@tollgate/runtime';
import { isDeepStrictEqual } from 'node:util';
import type { ComposedDeployment } from '../../e2e/composed';
import { operator } from '../../e2e/deployment';
import type { TestTenant } from '../../e2e/fixtures';
import { ask } from '../client-request';

const EVERY_MS = 1_500;
/** The maximum number at once. Each is repeated until it has an answer. */
const MAX_RUNNING = 12;
const RETRY_MS = 500;
/** Time from the end of the faults until each has an answer. */
const FINISH_TIMEOUT_MS = 150_000;
/** An operator repeats a call after this time. */
const CALL_TIMEOUT_MS = 15_000;
const REFUNDED_SHARE = 0.3;
const REPEATED_SHARE = 0.5;
const MAX_CENTS = 50;
const REVOKE_AFTER_MS = 2_000;
const PROBE_INTERVAL_MS = 250;
/** A successful revocation is in force everywhere after this time, under any fault. Otherwise its answer is 503. */
const REVOKED_MS = 1_000;

interface Entry {
  id: string;
}

interface Move {
  tenantId: string;
  cents: number;
}

/**
 * The work of an operator during faults. Top-ups and refunds have a `ref`, are repeated until they are answered, and
 * half of them are sent once more. Each must be booked exactly once. One key is revoked, and must not be served
 * afterwards.
 */
export class Operations {
  readonly findings: string[] = [];
  booked = 0;
  private readonly running = new Set<Promise<void>>();
  /** Bookings without an answer, by their `ref`. They may be booked or not. */
  private readonly unanswered = new Map<string, Move>();
  private timers: NodeJS.Timeout[] = [];
  private begun = 0;
  private giveUpMs = Infinity;
  private isAbandoned = false;

  /** `credited` is called for each booking. */
  constructor(
    private readonly tollgate: ComposedDeployment,
    private readonly tenantIds: readonly string[],
    /** The tenant whose credit is used up, so that it has nothing to refund. */
    private readonly scarceId: string,
    private readonly revoked: TestTenant,
    private readonly random: () => number,
    private readonly credited: (tenantId: string, cents: number) => void,
  ) {}

  start(): void {
    this.timers = [
      setInterval(() => this.running.size < MAX_RUNNING && this.keep(this.move()), EVERY_MS),
      setTimeout(() => this.keep(this.revoke()), REVOKE_AFTER_MS),
    ];
  }

  /** Begins no further operation, and waits for the answers. */
  async finish(): Promise<void> {
    await this.end(FINISH_TIMEOUT_MS);
    const refs = [...this.unanswered.keys()];
    const { rows } = await this.tollgate.database((client) =>
      client.query<{ ref: string }>(
        `SELECT ref FROM billing.journal_entry WHERE tenant_id = ANY($1) AND ref = ANY($2)`,
        [this.tenantIds, refs],
      ),
    );
    for (const { ref } of rows) this.credited(this.unanswered.get(ref)!.tenantId, this.unanswered.get(ref)!.cents);
  }

  /** Begins no further operation and abandons those without an answer, because the round has failed already. */
  async stop(): Promise<void> {
    this.isAbandoned = true;
    await this.end(0);
  }

  private async end(timeoutMs: number): Promise<void> {
    for (const timer of this.timers) clearTimeout(timer);
    this.giveUpMs = Math.min(this.giveUpMs, Date.now() + timeoutMs);
    while (this.running.size > 0) await Promise.all(this.running);
  }

  private keep(work: Promise<void>): void {
    const kept = work
      .catch((error: unknown) => void (this.isAbandoned || this.findings.push((error as Error).message)))
      .finally(() => this.running.delete(kept));
    this.running.add(kept);
  }

  private async move(): Promise<void> {
    const tenantId = this.tenantIds[Math.floor(this.random() * this.tenantIds.length)]!;
    const isRefund = this.random() < REFUNDED_SHARE && tenantId !== this.scarceId;
    const again = this.random() < REPEATED_SHARE;
    const amountCents = 1 + Math.floor(this.random() * MAX_CENTS);
    const ref = `nemesis-${++this.begun}`;
    const path = `/_operator/v1/tenants/${tenantId}/credit${isRefund ? '/refund' : ''}`;
    const cents = isRefund ? -amountCents : amountCents;
    this.unanswered.set(ref, { tenantId, cents });
    const entry = await this.answered<{ data: Entry }>('POST', path, { amountCents, ref });
    if (!entry) return;
    this.unanswered.delete(ref);
    this.booked++;
    this.credited(tenantId, cents);
    if (!again) return;
    const repeated = await this.answered<{ data: Entry }>('POST', path, { amountCents, ref });
    const expected = { ...entry.body, data: { ...entry.body.data, created: false } };
    if (repeated && !isDeepStrictEqual(repeated.body, expected))
      this.findings.push(
        `${ref}: its repeat answered ${JSON.stringify(repeated.body)}, not ${JSON.stringify(expected)}`,
      );
  }

  private async revoke(): Promise<void> {
    const { id: tenantId, keyId, key } = this.revoked;
    if (!(await this.answered('DELETE', `/_operator/v1/tenants/${tenantId}/keys/${keyId}`))) return;
    const answeredMs = Date.now();
    const asked = { tenantId, keyId, key, kind: 'embeddings' as const, tokens: 0 };
    // Probes until the key is refused. No fault may leave it in force.
    for (;;) {
      const { startedMs, failure } = await ask(this.tollgate.ready.inferenceUrl, {
        ...asked,
        // For an unknown model, a key in force gets 404, and nothing is charged.
        body: { model: 'no-such-model', input: 'revoked?' },
      });
      const sinceMs = startedMs - answeredMs;
      if (sinceMs > REVOKED_MS && failure?.startsWith('404'))
        throw new Error(`${keyId}: accepted ${sinceMs} ms after its revocation was answered`);
      if (failure?.startsWith('401') && this.giveUpMs < Infinity) return;
      if (Date.now() > this.giveUpMs) throw new Error(`${keyId}: revoked, but the last answer is ${failure}`);
      await new Promise((resolve) => setTimeout(resolve, PROBE_INTERVAL_MS));
    }
  }

  /**
   * Repeats a call with the same `ref` until it is answered. Returns undefined if it is refused or never answered,
   * which is a finding.
   */
  private async answered<T>(method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<{ body: T } | undefined> {
    for (;;) {
      const { status, body: answer } = await this.once<T>(method, path, body);
      if (status >= 200 && status < 300) return { body: answer };
      if (status !== 0 && status < 500) {
        this.findings.push(`${method} ${path} ${JSON.stringify(body)}: ${status} ${JSON.stringify(answer)}`);
        return undefined;
      }
      if (Date.now() > this.giveUpMs)
        throw new Error(`${method} ${path} ${JSON.stringify(body)}: last answer ${status}: ${JSON.stringify(answer)}`);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  /** Sends one call. Status 0 means no answer. */
  private async once<T>(method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<{ status: number; body: T }> {
    const api = operator(this.tollgate.ready);
    try {
      return await withTimeout(CALL_TIMEOUT_MS, method === 'POST' ? api.post<T>(path, body) : api.delete<T>(path));
    } catch {
      return { status: 0, body: undefined as T };
    }
  }
}
