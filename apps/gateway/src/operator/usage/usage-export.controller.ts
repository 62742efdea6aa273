import { Controller, Get, Query, Res, UseGuards } from '@nestjs/common';
import {
  LAST_INSTANT_MS,
  type ExportedUsage,
  type KeyNames,
  type ReplyOf,
  type UsageExportQuery as Wanted,
} from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource } from '@tollgate/runtime';
import type { FastifyReply } from 'fastify';
import { rangeOf } from '../../http/account/usage-query';
import { queryCheck } from '../../http/validate';
import { namesOfKeys } from './usage-by-names';
import { daysOf } from './usage-days';
import { UsageExportQuery } from './usage-export-schemas';
import { csvLines, focusLines, ndjsonLines, type NamedUsage, type UsageLines } from './usage-lines';
import { OPERATOR_PREFIX } from '../prefix';
import { SecretGuard } from '../port/secret-guard';
import { sendLines } from '../send-lines';
import { TenantLookup } from '../tenant-lookup';

type Page = ReplyOf<'metering.usage.export'>;
/** A filter can make the search for a page slow. */
const PAGE_DEADLINE_MS = 55_000;
/** About 10 MB. Names beyond it are not cached. */
const MAX_KEPT_NAMES = 20_000;
const STEP_MS = { request: 1, hour: 3_600_000, day: 86_400_000 };
const checkQuery = queryCheck(UsageExportQuery);

/** Usage for other systems, as a stream: a page of rows in memory at a time. */
@Controller(`${OPERATOR_PREFIX}/usage/export`)
@UseGuards(SecretGuard)
export class UsageExportController {
  constructor(
    private readonly services: ServiceClient,
    private readonly tenants: TenantLookup,
    private readonly config: ConfigSource,
  ) {}

  @Get()
  async export(@Query() query: unknown, @Res() reply: FastifyReply): Promise<void> {
    const { from, to, step, format, provider = 'Tollgate', ...filters } = checkQuery(query);
    const [fromMs, toMs] = wholeSteps(rangeOf(from, to, Date.now()), step);
    if (filters.tenantId !== undefined) await this.tenants.get(filters.tenantId);
    const wanted: Wanted = {
      ...filters,
      from: new Date(fromMs).toISOString(),
      to: new Date(toMs).toISOString(),
      step: step === 'request' ? step : 'hour',
    };
    const { currency } = this.config.current;
    const lines =
      format === 'csv'
        ? csvLines(currency)
        : format === 'ndjson'
          ? ndjsonLines(currency)
          : focusLines({ currency, provider });
    const pages = this.pages(wanted, await this.page(wanted));
    await sendLines(reply, lines.mediaType, this.texts(step === 'day' ? daysOf(pages) : pages, lines));
  }

  /** The head comes with the first rows, whose error is still answered in the envelope. */
  private async *texts(pages: AsyncIterable<ExportedUsage[]>, lines: UsageLines): AsyncGenerator<string> {
    const names = new Map<string, KeyNames | null>();
    let { head } = lines;
    for await (const page of pages) {
      const rows = await this.named(page, names);
      if (rows.length === 0) continue;
      yield head + rows.map((row) => lines.line(row)).join('');
      head = '';
    }
    if (head !== '') yield head;
  }

  private async *pages(wanted: Wanted, first: Page): AsyncGenerator<ExportedUsage[]> {
    for (let page = first; ; page = await this.page({ ...wanted, after: page.nextCursor })) {
      yield page.data;
      if (page.nextCursor === null) return;
    }
  }

  private page(wanted: Wanted): Promise<Page> {
    return this.services.request('metering.usage.export', wanted, { deadlineMs: PAGE_DEADLINE_MS });
  }

  /** Asks auth for names that are not known yet: once for a key, as a rule. */
  private async named(rows: ExportedUsage[], known: Map<string, KeyNames | null>): Promise<NamedUsage[]> {
    if (known.size > MAX_KEPT_NAMES) known.clear();
    // A day of a tenant may have more keys than auth takes at once.
    const ids = new Set(rows.map(({ keyId }) => keyId).filter((id) => !known.has(id)));
    const names = await namesOfKeys(this.services, ids);
    for (const id of ids) known.set(id, names.get(id) ?? null);
    return rows.map((row) => ({ ...row, names: known.get(row.keyId) ?? null }));
  }
}

/** The range, widened to whole steps. The API has no year 10000, so `to` is before it. */
export function wholeSteps([fromMs, toMs]: [number, number], step: keyof typeof STEP_MS): [number, number] {
  const width = STEP_MS[step];
  const lastMs = Math.floor(LAST_INSTANT_MS / width) * width;
  return [Math.floor(fromMs / width) * width, Math.min(Math.ceil(toMs / width) * width, lastMs)];
}
