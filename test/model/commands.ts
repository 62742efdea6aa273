import { FEMTOS_PER_NANO, type PriceStamp } from '@tollgate/contracts';
import fc from 'fast-check';
import type { CrashIn } from './stores';

/**
 * The messages of a queue to deliver, counted from its end. An index that occurs twice delivers its message twice.
 * Messages that are not acknowledged are redelivered.
 */
interface Delivery {
  picks: number[];
  acknowledged: boolean;
  crash: CrashIn;
  /** The outbox was published, but its removal was not committed. So its messages are published again. */
  twice: boolean;
}

export type Command =
  | { do: 'topUp'; tenant: number; cents: number; ref: number }
  | { do: 'refund'; tenant: number; cents: number; ref: number }
  | { do: 'adjust'; tenant: number; cents: number; ref: number; allowDebt: boolean }
  | { do: 'suspend'; tenant: number; suspended: boolean; late: boolean }
  | { do: 'setBudget'; tenant: number; key: number | null; cents: number | 'none' | 'default' }
  | { do: 'close'; crash: CrashIn; twice: boolean }
  | { do: 'price'; output: bigint; input: bigint }
  | { do: 'budget'; of: 'key' | 'tenant'; nanos: bigint | null }
  | { do: 'admit'; tenant: number; key: number; prompt: number; want: number; least: number }
  | { do: 'extend'; pick: number; tokens: number }
  | { do: 'progress'; pick: number; tokens: number }
  | { do: 'settle'; pick: number; tokens: number; overrun: boolean; emitted: boolean; again: boolean }
  | { do: 'void'; pick: number }
  | { do: 'killGateway'; gateway: number }
  | ({ do: 'usage' | 'charges' | 'updates' } & Delivery)
  | { do: 'post'; crash: CrashIn; twice: boolean }
  | { do: 'sweep'; lost: boolean; confirmAfterMs: number }
  | { do: 'empty' }
  | { do: 'wait'; ms: number };

const tenant = fc.nat(1);
const pick = fc.nat(30);
const rarely = (weight: number) => fc.nat(weight).map((n) => n === 0);
const crash = (...tables: Exclude<CrashIn, null>[]) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.constantFrom(...tables) });
const nanos = fc.constantFrom(0n, 1n, 333n, 40_000n, 1_000_000n, 3_333_333n);
const delivery = <D extends 'usage' | 'charges' | 'updates'>(
  of: D,
  weight: number,
  ...tables: Exclude<CrashIn, null>[]
) => ({
  weight,
  arbitrary: fc.record({
    do: fc.constant(of),
    picks: fc.array(pick, { minLength: 1, maxLength: 6 }),
    acknowledged: rarely(3).map((not) => !not),
    crash: tables.length > 0 ? crash(...tables) : fc.constant(null),
    twice: rarely(5),
  }),
});
const of = <C extends Command['do'], T extends object>(
  name: C,
  weight: number,
  fields: { [K in keyof T]: fc.Arbitrary<T[K]> },
) => ({
  weight,
  arbitrary: fc.record({ do: fc.constant(name), ...fields }) as unknown as fc.Arbitrary<Command>,
});

const weighted: { weight: number; arbitrary: fc.Arbitrary<Command> }[] = [
  of('topUp', 3, { tenant, cents: fc.integer({ min: 1, max: 30 }), ref: fc.nat(20) }),
  of('refund', 2, { tenant, cents: fc.integer({ min: 1, max: 20 }), ref: fc.nat(20) }),
  of('adjust', 2, {
    tenant,
    cents: fc.integer({ min: -20, max: 20 }).filter((cents) => cents !== 0),
    ref: fc.nat(20),
    allowDebt: rarely(2),
  }),
  of('suspend', 1, { tenant, suspended: rarely(1), late: rarely(4) }),
  of('setBudget', 2, {
    tenant,
    key: fc.option(fc.nat(1)),
    cents: fc.oneof(fc.nat(12), fc.constantFrom<'none' | 'default'>('none', 'default')),
  }),
  of('close', 2, { crash: crash('invoice', 'invoice_counter', 'journal_entry', 'outbox'), twice: rarely(5) }),
  of('price', 1, { output: nanos, input: nanos }),
  of('budget', 1, {
    of: fc.constantFrom('key', 'tenant'),
    nanos: fc.option(fc.constantFrom(0n, 5_000_000n, 60_000_000n)),
  }),
  of('admit', 9, { tenant, key: fc.nat(1), prompt: fc.nat(5), want: fc.nat(40), least: fc.nat(40) }),
  of('extend', 3, { pick, tokens: fc.integer({ min: 1, max: 30 }) }),
  of('progress', 3, { pick, tokens: fc.nat(40) }),
  of('settle', 7, {
    pick,
    tokens: fc.nat(40),
    overrun: rarely(6),
    emitted: rarely(3).map((not) => !not),
    again: rarely(5),
  }),
  of('void', 2, { pick }),
  of('killGateway', 1, { gateway: fc.nat(1) }),
  delivery('usage', 4, 'usage_hour', 'outbox'),
  delivery('charges', 4, 'charge', 'tenant_books', 'outbox'),
  delivery('updates', 4),
  of('post', 3, { crash: crash('journal_entry', 'tenant_books', 'outbox'), twice: rarely(5) }),
  of('sweep', 2, { lost: rarely(3), confirmAfterMs: fc.constantFrom(0, 5_000) }),
  of('wait', 3, { ms: fc.oneof(fc.nat(3_000), fc.nat(15_000), fc.constant(864_000_000)) }),
];

/**
 * The commands of one run. Each `wait` moves the time by at most ten days. With `mayBeEmptied` the admission store
 * sometimes loses all its data.
 */
export const commands = (maxLength: number, mayBeEmptied = false): fc.Arbitrary<Command[]> => {
  const command = fc.oneof(...weighted, ...(mayBeEmptied ? [of('empty', 3, {})] : []));
  return fc.array(command, { minLength: 4, maxLength, size: 'max' });
};

/** The prices of a command, in nanos per token. */
export function stamp(outputNanos: bigint, inputNanos: bigint): PriceStamp {
  const [inputFemtos, outputFemtos] = [String(inputNanos * FEMTOS_PER_NANO), String(outputNanos * FEMTOS_PER_NANO)];
  return {
    version: `${outputNanos}-${inputNanos}`,
    inputFemtos,
    cachedInputFemtos: '0',
    outputFemtos,
    requestNanos: '0',
  };
}
