import { parseBalanceUpdate, type Snapshot } from '@tollgate/admission';
import {
  newId,
  NANOS_PER_CENT,
  type BudgetUpdate,
  type Charge,
  type BalanceUpdate,
  type UsageEvent,
} from '@tollgate/contracts';
import {
  balanceUpdate,
  refundableCents,
  unpostedNanos,
  type Books,
  type Month,
} from '../../apps/billing/src/ledger/core/books';
import { newBooks } from '../../apps/billing/src/ledger/core/books.fixture';
import { book, type Entry } from '../../apps/billing/src/ledger/core/entry';
import { gather, type NumberedCharge, type ReadCharge } from '../../apps/billing/src/ledger/core/gather';
import { newestOver, periodOf } from '../../apps/billing/src/ledger/core/period';
import { partWanted, post, postThrough, type ChargeRange, type Part } from '../../apps/billing/src/ledger/core/post';
import { readCharge } from '../../apps/billing/src/gather/read-charge';
import { rate } from '../../apps/metering/src/price/rate';
import { ANY_PRICE } from '../../apps/metering/src/sample-events.fixture';
import { PureAdmission } from './pure-admission';
import type { Admission, Booking, BooksView, CrashIn, SetBudget, Stores } from './stores';

const CLOSE_DELAY_MS = 3_600_000;

interface Account {
  books: Books;
  months: Map<string, Month>;
  charges: Map<string, NumberedCharge>;
  entries: Entry[];
  ranges: ChargeRange[];
  statusVersion: number;
  budgets: Map<string | null, BudgetUpdate>;
}

interface Invoice {
  tenantId: string;
  period: string;
  cents: bigint;
}

/** The services as pure cores: rating, gathering, posting, booking, and the model of the admission store. */
export class PureStores implements Stores {
  readonly clock = { nowMs: 0 };
  private readonly model = new PureAdmission();
  private readonly events = new Map<string, Charge>();
  private readonly accounts = new Map<string, Account>();
  private readonly refs = new Map<string, number>();
  private readonly invoices: Invoice[] = [];
  private closedThrough = '0001-01';

  readonly admission: Admission = {
    admit: async (requests) => requests.map((request) => mistake(this.at().admit(request))),
    extend: async (requests) => requests.map((request) => this.at().extend(request)),
    progress: async (heartbeats) => heartbeats.map((heartbeat) => this.at().progress(heartbeat)),
    settle: async (settlements) =>
      this.at()
        .settle(settlements.map(({ event }) => event))
        .map(mistake),
    void: async (holds) => this.at().void(holds),
    sweep: async ({ confirmAfterMs }) => this.at().sweep(confirmAfterMs),
    applyBalanceUpdates: async (updates) => updates.forEach((one) => this.at().applyBalanceUpdates(one)),
    snapshot: async ({ tenantId }) => [this.snapshot(tenantId!)],
  };

  async recordUsage(batch: readonly UsageEvent[], crash: CrashIn): Promise<Charge[] | null> {
    if (crash !== null) return null;
    return batch.map((event) => {
      const known = this.events.get(event.id);
      if (known) return known;
      const { id, tenantId, keyId, endedAt } = event;
      const rating = rate(event, ANY_PRICE);
      if (!('chargeNanos' in rating)) throw new Error(`${id}: ${rating.reason}`);
      const charge = { id, tenantId, keyId, costNanos: String(rating.chargeNanos), endedAt };
      this.events.set(id, charge);
      return charge;
    });
  }

  async gather(batch: readonly Charge[], crash: CrashIn): Promise<BalanceUpdate[] | null> {
    if (crash !== null) return null;
    const updates: BalanceUpdate[] = [];
    for (const tenantId of new Set(batch.map((charge) => charge.tenantId))) {
      const account = this.account(tenantId);
      const all = new Map(batch.filter((one) => one.tenantId === tenantId).map((one) => [one.id, one]));
      const fresh = [...all.values()].filter(({ id }) => !account.charges.has(id)).map(read);
      const gathered = gather(account.books, [...account.months.values()], fresh, {
        running: periodOf(new Date(this.clock.nowMs)),
        closedThrough: this.closedThrough,
      });
      account.books = gathered.books;
      for (const month of gathered.months) account.months.set(month.period, month);
      for (const charge of gathered.charges) account.charges.set(charge.id, charge);
      updates.push(balanceUpdate(account.books, [...all.keys()]));
    }
    return updates;
  }

  async post(crash: CrashIn): Promise<BalanceUpdate[] | null> {
    if (crash !== null) return null;
    const updates: BalanceUpdate[] = [];
    for (const account of this.accounts.values()) {
      const before = account.books.version;
      const months = [...account.months.values()];
      const wanted = partWanted(account.books, months);
      const part = wanted && coveredPart(account, wanted);
      const posted = post(account.books, months, () => newId('ent'), part);
      account.books = posted.books;
      for (const month of posted.months) account.months.set(month.period, month);
      account.entries.push(...posted.entries);
      account.ranges.push(...posted.ranges);
      if (account.books.version > before) updates.push(balanceUpdate(account.books, []));
    }
    return updates;
  }

  async money(tenantId: string, booking: Booking): Promise<{ updates: BalanceUpdate[]; refused: boolean }> {
    const { kind, cents, ref, allowDebt } = booking;
    const account = this.account(tenantId);
    const name = `${tenantId} ${ref}`;
    const first = this.refs.get(name);
    if (first !== undefined) return { updates: [], refused: first !== cents };
    const amountCents = BigInt(cents);
    if (cents < 0 && !allowDebt && !this.mayLeave(account.books, -amountCents)) return { updates: [], refused: true };
    const type = ({ topUp: 'topup', refund: 'refund', adjust: 'adjustment' } as const)[kind];
    const period = periodOf(new Date(this.clock.nowMs));
    const { books, entry } = book(account.books, newId('ent'), { type, amountCents, source: 'manual', ref, period });
    account.books = books;
    account.entries.push(entry);
    this.refs.set(name, cents);
    return { updates: [balanceUpdate(books, [])], refused: false };
  }

  async status(tenantId: string, version: number, suspended: boolean): Promise<BalanceUpdate[]> {
    const account = this.account(tenantId);
    if (version <= account.statusVersion) return [];
    account.statusVersion = version;
    account.books = { ...account.books, version: account.books.version + 1n, suspended };
    return this.tellAtOnce(balanceUpdate(account.books, []));
  }

  async setBudget(tenantId: string, { keyId, cents }: SetBudget): Promise<BalanceUpdate[]> {
    const { books, budgets } = this.account(tenantId);
    const budgetNanos = typeof cents === 'number' ? String(BigInt(cents) * NANOS_PER_CENT) : cents;
    const before = budgets.get(keyId);
    if (before?.budgetNanos === budgetNanos) return [];
    const budget = { keyId, version: String(Number(before?.version ?? 0) + 1), budgetNanos };
    budgets.set(keyId, budget);
    return this.tellAtOnce({ ...balanceUpdate(books, []), budgets: [budget] });
  }

  /** The tenants before the one at which it crashes are closed. Here that is the first tenant. */
  async close(crash: CrashIn): Promise<BalanceUpdate[] | null> {
    const through = newestOver(new Date(this.clock.nowMs), CLOSE_DELAY_MS);
    const accounts = [...this.accounts.values()].slice(0, crash === null ? undefined : 1);
    const updates = accounts.flatMap((account) => this.closeMonths(account, through));
    if (crash === null && through > this.closedThrough) this.closedThrough = through;
    return updates;
  }

  async books(tenantId: string): Promise<BooksView> {
    const { books, charges, entries, ranges, months } = this.account(tenantId);
    const sum = (of: bigint[]) => of.reduce((total, one) => total + one, 0n);
    const entered = sum(entries.map((entry) => entry.amountCents));
    const debited = -sum(entries.filter(({ type }) => type === 'usage').map((entry) => entry.amountCents));
    const charged = sum([...charges.values()].map((charge) => charge.costNanos));
    const faults: string[] = [];
    if (entered !== books.balanceCents) faults.push('balance = sum of entries');
    if (charged !== debited * NANOS_PER_CENT + unpostedNanos(books)) faults.push('charges = debits + carried');
    if (ranges.some((range, i) => range.number !== BigInt(i + 1))) faults.push('charge ranges form a chain');
    const debits = (period: string) =>
      -sum(entries.filter((entry) => entry.type === 'usage' && entry.period === period).map((e) => e.amountCents));
    for (const { period, closed } of months.values()) {
      const invoices = this.invoices.filter((invoice) => invoice.tenantId === tenantId && invoice.period === period);
      if (invoices.length > (closed ? 1 : 0)) faults.push('one invoice a month, once it is closed');
      if (closed && sum(invoices.map(({ cents }) => cents)) !== debits(period)) faults.push('invoice = sum of entries');
    }
    return {
      balanceCents: books.balanceCents,
      unpostedNanos: unpostedNanos(books),
      charges: new Map([...charges.values()].map((charge) => [charge.id, charge.costNanos])),
      faults,
    };
  }

  /** Like MoneyOut: asks the store for the money before the books pay it out. */
  private mayLeave(books: Books, cents: bigint): boolean {
    if (cents > refundableCents(books)) return false;
    const { tenantId, version } = books;
    const taken = () => this.at().withdraw(tenantId, version + 1n, cents * NANOS_PER_CENT);
    if (taken()) return true;
    const { balanceNanos, suspended } = balanceUpdate(books, []);
    this.at().applyBalanceUpdates({ tenantId, version, balanceNanos: BigInt(balanceNanos), releases: [], suspended });
    return taken();
  }

  private closeMonths(account: Account, through: string): BalanceUpdate[] {
    const open = [...account.months.values()].filter(({ period, closed }) => period <= through && !closed);
    const posted = postThrough(account.books, open, through, () => newId('ent'));
    account.books = posted.books;
    account.entries.push(...posted.entries);
    account.ranges.push(...posted.ranges);
    const covered = new Map(posted.months.map((month) => [month.period, month]));
    for (const before of open) {
      const month = covered.get(before.period) ?? before;
      const closed = month.coveredSeq === month.lastSeq;
      account.months.set(month.period, { ...month, closed });
      const { tenantId, period, debitedCents: cents } = month;
      if (closed && cents > 0n) this.invoices.push({ tenantId, period, cents });
    }
    return posted.ranges.length > 0 ? [balanceUpdate(account.books, [])] : [];
  }

  private tellAtOnce(update: BalanceUpdate): BalanceUpdate[] {
    this.at().applyBalanceUpdates(parseBalanceUpdate(update));
    return [update];
  }

  private at(): PureAdmission {
    this.model.nowMs = this.clock.nowMs;
    return this.model;
  }

  private snapshot(tenantId: string): Snapshot {
    const sums = this.at().sums(tenantId);
    return {
      tenantId,
      version: this.model.version(tenantId),
      ...sums,
      holdRowsPendingNanos: sums.pendingNanos,
      holdRowsSettledNanos: sums.settledNanos,
      oldestSettledId: null,
      suspended: false,
      inFlight: 0n,
      withdrawnNanos: 0n,
    };
  }

  private account(tenantId: string): Account {
    let account = this.accounts.get(tenantId);
    if (!account) {
      const books = newBooks(tenantId);
      const [months, charges, budgets] = [new Map(), new Map(), new Map()];
      account = { books, months, charges, entries: [], ranges: [], statusVersion: 0, budgets };
      this.accounts.set(tenantId, account);
    }
    return account;
  }
}

function mistake<T>(result: T | 'mistake'): T | RangeError {
  return result === 'mistake' ? new RangeError('an invalid call') : result;
}

function read(charge: Charge): ReadCharge {
  const read = readCharge(charge);
  if ('reason' in read) throw new Error(read.reason);
  return read;
}

/** The part as the database computes it (apps/billing/src/ledger/books-store.ts). */
function coveredPart({ charges }: Account, { month, limitNanos }: { month: Month; limitNanos: bigint }): Part | null {
  const { period, coveredSeq } = month;
  const open = [...charges.values()].filter((one) => one.billedPeriod === period && one.seq > coveredSeq);
  let part: Part | null = null;
  for (const { seq, costNanos } of open.sort((a, b) => (a.seq < b.seq ? -1 : 1))) {
    const nanos: bigint = (part?.nanos ?? 0n) + costNanos;
    if (nanos > limitNanos) return part;
    part = { period, toSeq: seq, nanos };
  }
  return part;
}
