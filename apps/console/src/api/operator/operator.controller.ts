import { Controller, Get, HttpCode, Param, Patch, Post, Query, Req } from '@nestjs/common';
import { type Static, Type } from '@sinclair/typebox';
import { MAX_ENTRY_CENTS, type Author, type ReconcileRun, type TenantRow } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource } from '@tollgate/runtime';
import type { FastifyRequest } from 'fastify';
import { AllowOperator, ByCaller } from '../../access/allow';
import { bodyOf, queryOf } from '../../http/body';
import { ConsoleError } from '../../http/errors';
import type { Booked, Configuration, CreditPreview, Fleet, InvoiceList, TenantList } from '../answers';
import { checkedName, exact, InvoicePage, NameField, pageOf } from '../fields';
import { FleetStates } from './fleet-states';
import { modelRows } from '../usage/model-rows';
import { tenantNames } from './tenant-names';
import { wholeConfiguration } from './whole-configuration';
import { requireId } from '../../http/require-id';

/** Where an entry of the console comes from. */
const SOURCE = 'manual';

const readTenants = queryOf(
  Type.Composite([pageOf('ten'), Type.Object({ search: Type.Optional(Type.String({ maxLength: 100 })) })]),
);
const readInvoices = queryOf(InvoicePage);
const readTenant = bodyOf(
  Type.Object({ name: NameField, plan: Type.Optional(Type.String({ maxLength: 100 })) }, exact),
);
const readStatus = bodyOf(
  Type.Object({ status: Type.Union([Type.Literal('active'), Type.Literal('suspended')]) }, exact),
);
/** `ref` makes a repeat of the same booking harmless: the page keeps it until an answer arrives. */
const Booking = Type.Object(
  {
    kind: Type.Union([Type.Literal('topup'), Type.Literal('refund'), Type.Literal('adjustment')]),
    amountCents: Type.Integer({ minimum: -MAX_ENTRY_CENTS, maximum: MAX_ENTRY_CENTS }),
    reason: Type.String({ minLength: 1, maxLength: 200 }),
    ref: Type.String({ pattern: '^[A-Za-z0-9._:-]{1,100}$' }),
  },
  exact,
);
const readBooking = bodyOf(Booking);

/** What operators do: tenants, money, and the proof of the books. */
@Controller('console/api/operator')
export class OperatorController {
  constructor(
    private readonly services: ServiceClient,
    private readonly config: ConfigSource,
    private readonly fleetStates: FleetStates,
  ) {}

  @Get('tenants')
  @AllowOperator('tenants.read')
  async tenants(@Query() query: unknown): Promise<TenantList> {
    const page = await this.services.request('auth.tenants.list', readTenants(query));
    const ids = page.data.map(({ id }) => id);
    const { data } = await this.services.request('billing.tenants.balances', { ids });
    const money = new Map(data.map((row) => [row.tenantId, row]));
    return {
      ...page,
      data: page.data.map((row) => {
        const { balanceCents = 0, debitedCents = 0 } = money.get(row.id) ?? {};
        return { ...row, balanceCents, debitedCents };
      }),
    };
  }

  /** Requests, money, lags, backends, and the last proof of the books. */
  @Get('fleet')
  @AllowOperator('books.check')
  fleet(): Promise<Fleet> {
    return this.fleetStates.now();
  }

  @Get('plans')
  @AllowOperator('tenants.read')
  plans(): { data: string[] } {
    return { data: this.config.current.plans.map(({ id }) => id) };
  }

  /** `tollgate.yaml` as it is in force, without its secrets. */
  @Get('configuration')
  @AllowOperator('configuration.read')
  async configuration(): Promise<Configuration> {
    const config = this.config.current;
    const { currency, plans, budgets } = config;
    const { data: history } = await this.services.request('metering.prices.list', {});
    const models = modelRows(config);
    const whole = wholeConfiguration(config);
    return { currency, plans, thresholdsPercent: budgets.thresholdsPercent, models, history, whole };
  }

  /** Issued invoices of all tenants, newest first. */
  @Get('invoices')
  @AllowOperator('invoices.read')
  async invoices(@Query() query: unknown): Promise<InvoiceList> {
    const page = await this.services.request('billing.invoices.list', readInvoices(query));
    const names = await tenantNames(
      this.services,
      page.data.map(({ tenantId }) => tenantId),
    );
    return { ...page, data: page.data.map((row) => ({ ...row, tenantName: names.get(row.tenantId) ?? null })) };
  }

  @Post('tenants')
  @AllowOperator('tenants.write')
  create(@Req() request: FastifyRequest, @ByCaller() by: Author): Promise<TenantRow> {
    const { name, plan } = readTenant(request);
    return this.services.request('auth.tenants.create', {
      by,
      name: checkedName(name),
      ...(plan !== undefined && { plan }),
    });
  }

  @Get('tenants/:tenantId')
  @AllowOperator('tenants.read')
  tenant(@Param('tenantId') tenantId: string): Promise<TenantRow> {
    return this.services.request('auth.tenants.get', { tenantId });
  }

  @Patch('tenants/:tenantId')
  @AllowOperator('tenants.write')
  setStatus(
    @Param('tenantId') tenantId: string,
    @Req() request: FastifyRequest,
    @ByCaller() by: Author,
  ): Promise<TenantRow> {
    return this.services.request('auth.tenants.setStatus', { tenantId, status: readStatus(request).status, by });
  }

  /** What a booking would do to the balance as it is now. */
  @Post('tenants/:tenantId/credit/preview')
  @AllowOperator('credit.write')
  @HttpCode(200)
  async preview(@Param('tenantId') tenantId: string, @Req() request: FastifyRequest): Promise<CreditPreview> {
    const booking = readBooking(request);
    const { balanceCents } = await this.services.request('billing.summary', { tenantId, limit: 1 });
    if (booking.amountCents === 0 || (booking.amountCents < 0 && booking.kind !== 'adjustment'))
      throw new ConsoleError('invalid_amount', 'The amount must be above zero. Only an adjustment may be below.');
    const amountCents = signedAmount(booking);
    // Billing also refuses what requests hold or have used: it decides when the entry is booked.
    if (amountCents < 0 && balanceCents + amountCents < 0)
      throw new ConsoleError('insufficient_credit', 'The balance is smaller than this amount. Choose a smaller one.');
    return {
      type: booking.kind,
      amountCents,
      balanceBeforeCents: balanceCents,
      balanceAfterCents: balanceCents + amountCents,
    };
  }

  @Post('tenants/:tenantId/credit')
  @AllowOperator('credit.write')
  book(@Param('tenantId') tenantId: string, @Req() request: FastifyRequest, @ByCaller() by: Author): Promise<Booked> {
    const { kind, amountCents, reason, ref } = readBooking(request);
    const entry = { tenantId, amountCents, source: SOURCE, ref, reason, by };
    if (kind === 'topup') return this.services.request('billing.credit.add', entry);
    if (kind === 'refund') return this.services.request('billing.credit.refund', entry);
    return this.services.request('billing.credit.adjust', entry);
  }

  @Post('reconcile')
  @AllowOperator('books.check')
  reconcile(@ByCaller() by: Author): Promise<{ id: string }> {
    return this.services.request('billing.reconcile.start', { by });
  }

  @Get('reconcile/:id')
  @AllowOperator('books.check')
  run(@Param('id') id: string): Promise<ReconcileRun> {
    requireId('rec', id);
    return this.services.request('billing.reconcile.get', { id });
  }
}

/** A refund lowers the balance. Its amount is positive in the request. */
function signedAmount({ kind, amountCents }: Static<typeof Booking>): number {
  return kind === 'refund' ? -amountCents : amountCents;
}
