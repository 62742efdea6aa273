import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { query } from '@tollgate/postgres';
import { logger, StartError, type ConfigSource } from '@tollgate/runtime';
import { BillingDataSource } from '../database';
import { BILLING_OPTIONS } from '../options';

/**
 * The currency in which the books were started. Amounts are plain numbers that nothing converts. So a configuration
 * with another currency is refused, at the start and while running, unless the books are empty.
 */
@Injectable()
export class BooksCurrency implements OnModuleInit {
  constructor(
    private readonly dataSource: BillingDataSource,
    @Inject(BILLING_OPTIONS)
    private readonly options: { currency: () => string; config?: Pick<ConfigSource, 'addCheck' | 'onChange'> },
  ) {}

  /** Keeps the currency of new or empty books. Rejects with StartError if the books are in another one. */
  async onModuleInit(): Promise<void> {
    const { config } = this.options;
    // Before anything is awaited: the file may change meanwhile.
    config?.addCheck(async (next) => {
      const problem = await this.problemWith(next.currency);
      return problem === null ? [] : [problem];
    });
    config?.onChange((next) => {
      this.keep(next.currency).catch((error: unknown) =>
        logger('billing').error(
          { err: error, currency: next.currency },
          'the currency of the books could not be stored',
        ),
      );
    });
    const problem = await this.problemWith(this.options.currency());
    if (problem !== null) throw new StartError(problem);
    await this.keep(this.options.currency());
  }

  /** Rejects when the database does not answer. */
  async problemWith(currency: string): Promise<string | null> {
    const [kept] = await query<{ currency: string }>(
      this.dataSource,
      `SELECT currency
       FROM books_currency
       WHERE currency <> $1 AND (EXISTS (SELECT FROM journal_entry) OR EXISTS (SELECT FROM charge))`,
      [currency],
    );
    if (!kept) return null;
    return (
      `currency: the books are in ${kept.currency}, but the configuration says ${currency}. Amounts are not ` +
      `converted. Restore ${kept.currency}, or start books in ${currency} in another database.`
    );
  }

  private async keep(currency: string): Promise<void> {
    await query(
      this.dataSource,
      `INSERT INTO books_currency AS b (currency) VALUES ($1)
       ON CONFLICT (one) DO UPDATE SET currency = excluded.currency WHERE b.currency <> excluded.currency`,
      [currency],
    );
  }
}
