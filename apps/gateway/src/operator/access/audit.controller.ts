import { Controller, Get, Query, Res, UseGuards } from '@nestjs/common';
import {
  DEFAULT_PAGE_ROWS,
  MAX_PAGE_ROWS,
  mergedAudit,
  type AuditQuery,
  type AuditRow,
  type Page,
} from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import type { FastifyReply } from 'fastify';
import { parseInstant } from '../../http/instant';
import { queryCheck } from '../../http/validate';
import { AUDIT_CSV_HEADER, auditCsvLine } from './audit-csv';
import { AuditExportQuery, AuditPageQuery } from './audit-schemas';
import { OPERATOR_PREFIX } from '../prefix';
import { SecretGuard } from '../port/secret-guard';
import { sendLines } from '../send-lines';

const checkPage = queryCheck(AuditPageQuery);
const checkExport = queryCheck(AuditExportQuery);

/** The changes that were made by way of this API and the management API. Each service keeps those that it made. */
@Controller(`${OPERATOR_PREFIX}/audit`)
@UseGuards(SecretGuard)
export class AuditController {
  constructor(private readonly services: ServiceClient) {}

  @Get()
  list(@Query() query: unknown): Promise<Page<AuditRow>> {
    return this.page(inUtc(checkPage(query)));
  }

  /** All rows as CSV, newest first: a stream, one page of rows in memory at a time. */
  @Get('export')
  async export(@Query() query: unknown, @Res() reply: FastifyReply): Promise<void> {
    const wanted = { ...inUtc(checkExport(query)), limit: MAX_PAGE_ROWS };
    await sendLines(reply, 'text/csv; charset=utf-8', this.lines(wanted, await this.page(wanted)));
  }

  private async *lines(wanted: AuditQuery, first: Page<AuditRow>): AsyncGenerator<string> {
    yield AUDIT_CSV_HEADER;
    for (let page = first; ; page = await this.page({ ...wanted, after: page.nextCursor })) {
      yield page.data.map(auditCsvLine).join('');
      if (page.nextCursor === null) return;
    }
  }

  /** A page of both logs. */
  private async page(wanted: AuditQuery): Promise<Page<AuditRow>> {
    const pages = await Promise.all([
      this.services.request('auth.audit.list', wanted),
      this.services.request('billing.audit.list', wanted),
    ]);
    return mergedAudit(pages, wanted.limit ?? DEFAULT_PAGE_ROWS);
  }
}

/** The query with its times as ISO 8601 UTC. */
function inUtc<Q extends Pick<AuditQuery, 'from' | 'to'>>({ from, to, ...rest }: Q) {
  const utc = (text: string) => new Date(parseInstant(text)!).toISOString();
  return { ...rest, ...(from !== undefined && { from: utc(from) }), ...(to !== undefined && { to: utc(to) }) };
}
