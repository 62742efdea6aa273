import { Injectable } from '@nestjs/common';
import { mintCredential, type Author } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { logger } from '@tollgate/runtime';
import { LRUCache } from 'lru-cache';
import type { Caller } from '../../access/allow';
import { ConsoleError } from '../../http/errors';
import type { Tried } from '../answers';
import { ApiAddresses } from '../api-addresses';

const KEY_LIFETIME_MS = 60 * 60_000;
/** A key is not used in its last minutes, so that it does not expire in a request. */
const KEY_USED_MS = 50 * 60_000;
const MAX_KEYS = 1_000;
const ANSWER_TIMEOUT_MS = 120_000;

/** What a person tries. */
export interface Trial {
  model: string;
  kind: 'chat' | 'embedding';
  prompt: string;
  maxTokens: number;
}

/**
 * Tries models as a program does: over HTTP, with a key of the tenant. Each session creates its own key, which lives
 * for an hour. Only this process has it, so a browser never sees it.
 */
@Injectable()
export class Playgrounds {
  private readonly keys = new LRUCache<string, Promise<string>>({ max: MAX_KEYS, ttl: KEY_USED_MS });

  constructor(
    private readonly services: ServiceClient,
    private readonly addresses: ApiAddresses,
  ) {}

  /** The answer of the inference API, also if it is an error. Error: unavailable. */
  async run({ tenantId, caller, by }: { tenantId: string; caller: Caller; by: Author }, trial: Trial): Promise<Tried> {
    const key = await this.keyOf({ tenantId, caller, by });
    const startedAtMs = performance.now();
    const { path, body } = requestOf(trial);
    let answer: Response;
    try {
      answer = await fetch(`${this.addresses.calledInferenceUrl}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
      });
    } catch (error) {
      logger('console').warn({ err: error }, 'a request of the playground failed');
      throw new ConsoleError('unavailable', 'The inference API is temporarily unavailable. Try again shortly.');
    }
    const { status, headers } = answer;
    // A key that was revoked on the page of keys.
    if (status === 401) this.keys.delete(nameOf(tenantId, caller));
    return {
      status,
      requestId: headers.get('x-request-id'),
      seconds: (performance.now() - startedAtMs) / 1_000,
      answer: await answer.json().catch(() => null),
    };
  }

  private keyOf({ tenantId, caller, by }: { tenantId: string; caller: Caller; by: Author }): Promise<string> {
    const name = nameOf(tenantId, caller);
    const known = this.keys.get(name);
    if (known) return known;
    const made = this.make(tenantId, caller, by);
    this.keys.set(name, made);
    made.catch(() => this.keys.delete(name));
    return made;
  }

  /** Its owner is the person, except an operator: tenants do not know who they are. */
  private async make(tenantId: string, { email, isOperator }: Caller, by: Author): Promise<string> {
    const { value, hash, last4 } = mintCredential('key');
    const expiresAt = new Date(Date.now() + KEY_LIFETIME_MS).toISOString();
    await this.services.request('auth.keys.create', {
      ...{ by, tenantId, name: 'Playground', hash, last4, expiresAt, ...(!isOperator && { owner: email }) },
    });
    return value;
  }
}

const nameOf = (tenantId: string, { sessionId }: Caller): string => `${sessionId} ${tenantId}`;

/** The page shows the same request as code. */
function requestOf({ model, kind, prompt, maxTokens }: Trial): { path: string; body: object } {
  if (kind === 'embedding') return { path: '/embeddings', body: { model, input: prompt } };
  const messages = [{ role: 'user', content: prompt }];
  return { path: '/chat/completions', body: { model, messages, max_tokens: maxTokens } };
}
