import type { ExportedUsage, KeyNames } from '@tollgate/contracts';
import { csvLine } from '../csv';

/** A row of the export with the names of its key. Null: auth does not know the key. */
export interface NamedUsage extends ExportedUsage {
  names: KeyNames | null;
}

export interface UsageLines {
  mediaType: string;
  /** Before the first row; empty: none. */
  head: string;
  line(row: NamedUsage): string;
}

type Value = string | number | null;
const NANOS_DIGITS = 9;

/** The columns, each with its value. The names are for NDJSON; CSV has them in snake case. */
const COLUMNS: Record<string, (row: NamedUsage, currency: string) => Value> = {
  from: ({ from }) => from,
  to: ({ to }) => to,
  requestId: ({ id }) => id,
  tenantId: ({ tenantId }) => tenantId,
  tenantName: ({ names }) => names?.tenantName ?? null,
  externalId: ({ names }) => names?.externalId ?? null,
  keyId: ({ keyId }) => keyId,
  keyName: ({ names }) => names?.name ?? null,
  owner: ({ names }) => names?.owner ?? null,
  tags: ({ names }) => names?.tags.join(' ') ?? '',
  model: ({ model }) => model,
  kind: ({ kind }) => kind,
  outcome: ({ outcome }) => outcome,
  backend: ({ backend }) => backend,
  requests: ({ requests }) => requests,
  failed: ({ failed }) => failed,
  clientClosed: ({ clientClosed }) => clientClosed,
  estimated: ({ estimated }) => estimated,
  promptTokens: ({ promptTokens }) => promptTokens,
  cachedTokens: ({ cachedTokens }) => cachedTokens,
  completionTokens: ({ completionTokens }) => completionTokens,
  reasoningTokens: ({ reasoningTokens }) => reasoningTokens,
  costNanos: ({ costNanos }) => costNanos,
  currency: (_, currency) => currency,
};

export function csvLines(currency: string): UsageLines {
  const names = Object.keys(COLUMNS).map((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
  const values = Object.values(COLUMNS);
  return {
    mediaType: 'text/csv; charset=utf-8',
    head: csvLine(names),
    line: (row) => csvLine(values.map((value) => value(row, currency))),
  };
}

export function ndjsonLines(currency: string): UsageLines {
  const columns = Object.entries(COLUMNS);
  return {
    mediaType: 'application/x-ndjson; charset=utf-8',
    head: '',
    line(row) {
      const fields = Object.fromEntries(columns.map(([name, value]) => [name, value(row, currency)]));
      return `${JSON.stringify({ ...fields, tags: row.names?.tags ?? [] })}\n`;
    },
  };
}

/** The columns of FOCUS 1.2 (focus.finops.org). Their order is free. Columns of our own begin with `x_`. */
const FOCUS: Record<string, (row: NamedUsage, of: { currency: string; provider: string }) => Value> = {
  BilledCost: ({ costNanos }) => decimal(costNanos),
  BillingAccountId: ({ tenantId }) => tenantId,
  BillingAccountName: ({ names }) => names?.tenantName ?? null,
  BillingAccountType: () => 'Tenant',
  BillingCurrency: (_, { currency }) => currency,
  BillingPeriodEnd: ({ to, id }) => monthOf(to, id, 1),
  BillingPeriodStart: ({ to, id }) => monthOf(to, id, 0),
  ChargeCategory: () => 'Usage',
  ChargeClass: () => null,
  ChargeDescription: ({ model, requests }) => `${requests} ${requests === 1 ? 'request' : 'requests'} to ${model}`,
  ChargeFrequency: () => 'Usage-Based',
  // Exclusive: a request that ends within a second takes the whole second.
  ChargePeriodEnd: ({ to, id }) => focusTime(Date.parse(to) + (id === null ? 0 : 1_000)),
  ChargePeriodStart: ({ from }) => focusTime(Date.parse(from)),
  ConsumedQuantity: ({ promptTokens, completionTokens }) => promptTokens + completionTokens,
  ConsumedUnit: () => 'Tokens',
  ContractedCost: ({ costNanos }) => decimal(costNanos),
  EffectiveCost: ({ costNanos }) => decimal(costNanos),
  InvoiceIssuerName: (_, { provider }) => provider,
  ListCost: ({ costNanos }) => decimal(costNanos),
  PricingCategory: () => 'Standard',
  PricingQuantity: ({ promptTokens, completionTokens }) => promptTokens + completionTokens,
  PricingUnit: () => 'Tokens',
  ProviderName: (_, { provider }) => provider,
  PublisherName: (_, { provider }) => provider,
  ResourceId: ({ model }) => model,
  ResourceName: ({ model }) => model,
  ResourceType: () => 'Model',
  ServiceCategory: () => 'AI and Machine Learning',
  ServiceName: () => 'Model inference',
  ServiceSubcategory: () => 'Generative AI',
  SkuId: ({ model }) => model,
  SubAccountId: ({ keyId }) => keyId,
  SubAccountName: ({ names }) => names?.name ?? null,
  SubAccountType: () => 'Key',
  Tags: ({ names }) => JSON.stringify(tagsOf(names)),
  x_CachedTokens: ({ cachedTokens }) => cachedTokens,
  x_CompletionTokens: ({ completionTokens }) => completionTokens,
  x_ExternalId: ({ names }) => names?.externalId ?? null,
  x_FailedRequests: ({ failed }) => failed,
  x_PromptTokens: ({ promptTokens }) => promptTokens,
  x_ReasoningTokens: ({ reasoningTokens }) => reasoningTokens,
  x_RequestId: ({ id }) => id,
  x_Requests: ({ requests }) => requests,
};

export function focusLines(of: { currency: string; provider: string }): UsageLines {
  const values = Object.values(FOCUS);
  return {
    mediaType: 'text/csv; charset=utf-8',
    head: csvLine(Object.keys(FOCUS)),
    line: (row) => csvLine(values.map((value) => value(row, of))),
  };
}

/**
 * Tags of FOCUS have keys: a tag `team:search` is the value search of team, any other one is true. FOCUS allows a key
 * once, and no list as its value. So the values of several tags with one key are one text, separated by commas, which
 * no tag has.
 */
function tagsOf(names: KeyNames | null): Record<string, string | true> {
  const values = new Map<string, string[]>();
  for (const tag of names?.tags.toSorted() ?? []) {
    const at = tag.indexOf(':');
    const key = at > 0 ? tag.slice(0, at) : tag;
    values.set(key, [...(values.get(key) ?? []), ...(at > 0 ? [tag.slice(at + 1)] : [])]);
  }
  const pairs = [...values].map(([key, all]) => [key, all.length === 0 || all.join(',')] as const);
  return { ...Object.fromEntries(pairs), ...(names?.owner != null && { owner: names.owner }) };
}

/** Nanos (a decimal string) as currency units, exactly. */
function decimal(nanos: string): string {
  const digits = nanos.padStart(NANOS_DIGITS + 1, '0');
  return `${digits.slice(0, -NANOS_DIGITS)}.${digits.slice(-NANOS_DIGITS)}`;
}

/**
 * The first instant of a month (UTC): `later` months after the one to which usage until `to` belongs. The `to` of an
 * hour is exclusive.
 */
function monthOf(to: string, id: string | null, later: number): string {
  const last = new Date(Date.parse(to) - (id === null ? 1 : 0));
  return focusTime(Date.UTC(last.getUTCFullYear(), last.getUTCMonth() + later));
}

/** Whole seconds, as FOCUS writes times. A part of a second is cut off. */
function focusTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -'.000Z'.length)}Z`;
}
