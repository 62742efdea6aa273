import type { ModelRow } from '../../../src/api/answers';
import { amountOfNanos, count } from '../parts/format';
import { DataTable } from '../parts/page';

/** Models and their prices. */
export function ModelTable({ models }: { models: readonly ModelRow[] }) {
  return (
    <DataTable
      label="Models"
      head={[
        'Model',
        'Kind',
        '#Context',
        '#Largest output',
        '#Input',
        '#Cached input',
        '#Output',
        '#Per request',
        '#A typical request',
      ]}
      rows={models.map((model) => [
        model.id,
        model.kind,
        count(model.contextTokens),
        model.kind === 'chat' ? count(model.maxOutputTokens) : '–',
        amountOfNanos(nanosOf(model.price.input)),
        amountOfNanos(nanosOf(model.price.cachedInput ?? model.price.input)),
        model.kind === 'chat' ? amountOfNanos(nanosOf(model.price.output)) : '–',
        amountOfNanos(nanosOf(model.price.request)),
        amountOfNanos(typicalNanos(model)),
      ])}
    />
  );
}

const TYPICAL_INPUT_TOKENS = 1_000n;
const TYPICAL_OUTPUT_TOKENS = 500n;
const NANOS_DIGITS = 9;
const TOKENS_PER_PRICE = 1_000_000n;

/** What 1,000 tokens in and, of a chat, 500 tokens out cost. */
function typicalNanos({ kind, price }: ModelRow): bigint {
  const input = TYPICAL_INPUT_TOKENS * nanosOf(price.input);
  const output = kind === 'chat' ? TYPICAL_OUTPUT_TOKENS * nanosOf(price.output) : 0n;
  return (input + output) / TOKENS_PER_PRICE + nanosOf(price.request);
}

/** A decimal amount in nanos: the configuration allows no more digits. */
function nanosOf(amount: string): bigint {
  const [whole = '0', decimals = ''] = amount.split('.');
  return BigInt(whole + decimals.slice(0, NANOS_DIGITS).padEnd(NANOS_DIGITS, '0'));
}
