import { type AdmissionClient, type AdmitRequest, type Limits } from '@tollgate/admission';
import { ceilDiv, FEMTOS_PER_NANO, type UsageDraft } from '@tollgate/contracts';
import type { CatalogModel } from '../catalog/catalog';
import { bodyRules } from '../body/body-rules.fixture';
import { readRequest } from '../body/inference-request';
import { PromptEstimate } from '../prompt/prompt-estimate';
import { Admitter, type Candidate } from '../admit/admit';
import type { ExpectedEnds } from '../admit/expected-ends';

const limits: Limits = { requestsPerMinute: 1_000, tokensPerMinute: 1_000_000, concurrency: 100 };
/** Prices in nanos a token. */
const modelAt = (id: string, prompt: bigint, output: bigint) => {
  const prices = { promptFemtosPerToken: prompt * FEMTOS_PER_NANO, outputFemtosPerToken: output * FEMTOS_PER_NANO };
  return { ...bodyRules({ contextTokens: 100_000 }), ...prices, requestFemtos: 0n, id } as CatalogModel;
};
const model = modelAt('own', 1n, 2n);
const cheap = modelAt('cheap', 1n, 1n);
const dear = modelAt('dear', 10n, 20n);

const OUTPUT_TOKENS = 50;
/** 6,000 bytes in 1,000 tokens. */
const content = 'words '.repeat(1_000);
const raw = Buffer.from(JSON.stringify({ model: 'own', messages: [{ role: 'user', content }] }));
const bound = () => {
  const request = readRequest('chat', raw, () => model);
  return PromptEstimate.toHold(request, model, OUTPUT_TOKENS);
};
/** The price of a hold of the expensive model with a counted prompt, and with one bounded by its bytes. */
const COUNTED_NANOS = costAt(dear, bound().counted().upperBound);
const BOUNDED_NANOS = costAt(dear, bound().upperBound);

function costAt({ promptFemtosPerToken, outputFemtosPerToken }: CatalogModel, promptTokens: number): bigint {
  const femtos = BigInt(promptTokens) * promptFemtosPerToken + BigInt(OUTPUT_TOKENS) * outputFemtosPerToken;
  return ceilDiv(femtos, FEMTOS_PER_NANO);
}

function candidate(): Candidate {
  return {
    draft: { id: 'req_1', tenantId: 'ten_1', keyId: 'key_1', stream: false } as UsageDraft,
    model,
    fallbacks: [cheap, dear],
    tenantLimits: limits,
    keyLimits: limits,
    tenantBudgetNanos: null,
    keyBudgetNanos: null,
    prompt: bound(),
    output: { choices: 1, tokensPerChoice: OUTPUT_TOKENS, isNamed: true },
  };
}

/** Admission by a store that has this credit for each request, and what was asked of it. */
function admitter(creditNanos: bigint) {
  const asked: AdmitRequest[] = [];
  const admit = (request: AdmitRequest) => {
    asked.push(request);
    const { promptFemtos, wantOutputTokens, outputFemtosPerToken, boundIsExact } = request;
    const holdNanos = ceilDiv(promptFemtos + BigInt(wantOutputTokens) * outputFemtosPerToken, FEMTOS_PER_NANO);
    if (holdNanos <= creditNanos)
      return Promise.resolve({ kind: 'held', holdNanos, outputTokens: wantOutputTokens, limits: {} });
    const reason = boundIsExact ? 'credit_exhausted' : 'bound';
    return Promise.resolve({ kind: 'refused', reason, scope: 'tenant', retryAfterMs: null, limits: {} });
  };
  const one = new Admitter({ admit } as unknown as AdmissionClient, {} as ExpectedEnds);
  const fallbacks = async () => {
    const admission = await one.admit(candidate(), 0);
    return admission.kind === 'held' ? admission.hold.fallbacks.map(({ id }) => id) : admission.reason;
  };
  return { asked, fallbacks };
}

describe('a request with a more expensive fallback', () => {
  it('is held with it while the credit pays for it beside the counted prompt, however many came before', async () => {
    const { asked, fallbacks } = admitter((COUNTED_NANOS + BOUNDED_NANOS) / 2n);
    // More than the requests of a tenant that are counted in any case.
    for (let n = 0; n < 100; n++) expect(await fallbacks()).toEqual(['cheap', 'dear']);
    // One of them was tried by its bytes. It was counted then, and so are those that follow.
    expect(asked.filter(({ promptFemtos }) => promptFemtos > COUNTED_NANOS * FEMTOS_PER_NANO)).toHaveLength(1);
    expect(asked).toHaveLength(101);
  });

  it('is held without it, at its own price, if the credit does not pay for it beside the counted prompt', async () => {
    const { asked, fallbacks } = admitter(COUNTED_NANOS - 1n);
    for (let n = 0; n < 100; n++) expect(await fallbacks()).toEqual(['cheap']);
    expect(asked.at(-1)!.promptFemtos).toBe(BigInt(bound().counted().upperBound) * model.promptFemtosPerToken);
  });

  it('is refused if the credit does not pay for its own model either', async () => {
    const { fallbacks } = admitter(costAt(model, bound().counted().upperBound) - 1n);
    for (let n = 0; n < 100; n++) expect(await fallbacks()).toBe('credit_exhausted');
  });
});
