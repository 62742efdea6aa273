import { newId } from '@tollgate/contracts';
import type { HeldRequest } from './held-request';
import type { UsageToSettle } from './settlement';

const LIMITS = { requestsPerMinute: 1, tokensPerMinute: 1, concurrency: 1 };

/** A stream that holds 10 nanos. Each token of output costs `outputNanos`. */
export function heldStream(outputNanos = 0): HeldRequest {
  const id = newId('req');
  const startedAt = new Date().toISOString();
  const outputFemtos = String(outputNanos * 1_000_000);
  const price = { version: 'v', inputFemtos: '0', cachedInputFemtos: '0', outputFemtos, requestNanos: '0' };
  return {
    draft: {
      id,
      tenantId: newId('ten'),
      keyId: newId('key'),
      model: 'm',
      kind: 'chat',
      stream: true,
      price,
      startedAt,
    },
    hold: {
      prompt: { upperBound: 1 },
      maxTokensPerChoice: 2,
      storeEpoch: undefined,
      holdNanos: 10n,
      admittedUnder: { keyLimits: LIMITS, tenantLimits: LIMITS },
    },
    request: { choices: 1 },
    asked: null,
    payable: (heldNanos) => heldNanos,
    begun: [],
    failed: null,
    admittedAtMs: 0,
    logged: { requestId: 'chosen-by-the-caller', id, model: 'm', traceId: 'a'.repeat(32) },
  };
}

/** Two tokens of output, as the backend reported them. */
export const DELIVERED: UsageToSettle = {
  tokens: { promptTokens: 1, cachedTokens: 0, completionTokens: 2 },
  estimated: false,
  details: {},
  outcome: 'complete',
  firstTokenAtMs: null,
  extensions: 0,
  allowance: null,
  isReported: true,
};
