import { AuthModule } from '@tollgate/auth';
import { BillingModule } from '@tollgate/billing';
import { PostgresMessages } from '@tollgate/messaging';
import { MeteringModule } from '@tollgate/metering';
import type { Basics } from './stores';
import type { StandaloneSettings } from './settings';

/** The messages of the process that keeps the books. */
export const messagesOfBooks = (url: string) =>
  new PostgresMessages({
    url,
    applicationName: 'tollgate-messages',
    services: ['auth', 'metering', 'billing'],
  });

/** Auth, metering and billing. One process of an instance has them. */
export function books(
  settings: StandaloneSettings,
  { tracer, config }: Basics,
  { url, simulatorUrl }: { url: string; simulatorUrl: string },
) {
  return [
    AuthModule.register({ databaseUrl: url }),
    MeteringModule.register({
      databaseUrl: url,
      config,
      simulatorUrl,
      tracer,
      usageKeptMonths: settings.TOLLGATE_USAGE_KEPT_MONTHS,
    }),
    BillingModule.register({
      databaseUrl: url,
      thresholdsPercent: () => config.current.budgets.thresholdsPercent,
      currency: () => config.current.currency,
      config,
      invoiceCloseDelayMs: settings.TOLLGATE_INVOICE_CLOSE_MINUTES * 60_000,
      tracer,
    }),
  ];
}
