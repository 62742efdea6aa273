import type { ModelRow } from '../../src/api/answers';
import { amountOfNanos, count } from './format';
import { DataTable } from './page';

/** Models and their prices, as written in the configuration. */
export function ModelTable({ models }: { models: readonly ModelRow[] }) {
  return (
    <DataTable
      label="Models"
      head={[
        'Model',
        'Kind',
        'Context',
        'Largest output',
        'Input',
        'Cached input',
        'Output',
        'Per request',
        'A typical request',
      ]}
      rows={models.map((model) => [
        model.id,
        model.kind,
        count(model.contextTokens),
        model.kind === 'chat' ? count(model.maxOutputTokens) : '–',
        <span className="figures">{model.price.input}</span>,
        <span className="figures">{model.price.cachedInput ?? model.price.input}</span>,
        <span className="figures">{model.kind === 'chat' ? model.price.output : '–'}</span>,
        <span className="figures">{model.price.request}</span>,
        <span className="figures">{amountOfNanos(typicalNanos(model))}</span>,
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

/** A decimal amount in nanos; more digits do not matter here. */
function nanosOf(amount: string): bigint {
  const [whole = '0', decimals = ''] = amount.split('.');
  return BigInt(whole + decimals.slice(0, NANOS_DIGITS).padEnd(NANOS_DIGITS, '0'));
}
