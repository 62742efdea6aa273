import { Controller, Get, HttpCode, Param, Post, Query, Req, Res, UseGuards } from '@nestjs/common';
import type { Author, ReconcileRun } from '@tollgate/contracts';
import { ServiceClient } from '@tollgate/messaging/nest';
import { ConfigSource, delay } from '@tollgate/runtime';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { refuseFields } from '../../http/account/body';
import { ApiError } from '../../http/api-error';
import { parseInstant } from '../../http/instant';
import { queryCheck } from '../../http/validate';
import { BackendHoursQuery } from '../backends/backend-schemas';
import { OPERATOR_PREFIX } from '../prefix';
import { ByOperator, SecretGuard } from '../port/secret-guard';
import { requireId } from '../require-id';

/** A caller reads a longer run by its id. */
const MAX_WAIT_MS = 10_000;
const FIRST_LOOK_MS = 10;
const MAX_LOOK_MS = 200;

const checkHours = queryCheck(BackendHoursQuery);

@Controller(`${OPERATOR_PREFIX}/reconcile`)
@UseGuards(SecretGuard)
export class ReconcileController {
  constructor(
    private readonly services: ServiceClient,
    private readonly config: ConfigSource,
  ) {}

  /**
   * Starts a run and waits for a limited time. 200 with the report, whether or not it found differences. 202 with the
   * id and progress of a run that takes longer. 503 with the reason of a run that failed: a repeat starts another one.
   */
  @Post()
  @HttpCode(200)
  async start(
    @ByOperator() by: Author,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    refuseFields(request);
    const { id } = await this.services.request('billing.reconcile.start', { by });
    const until = Date.now() + MAX_WAIT_MS;
    for (let lookMs = FIRST_LOOK_MS; ; lookMs = Math.min(lookMs * 2, MAX_LOOK_MS)) {
      await delay(lookMs);
      const run = await this.services.request('billing.reconcile.get', { id });
      if (run.state === 'running' && Date.now() < until) continue;
      if (run.state === 'failed') throw new ApiError('unavailable', run.reason);
      if (run.state === 'running') reply.code(202);
      return { data: run.state === 'done' ? this.report(run) : run };
    }
  }

  /** Compares the counters of the engines with the books. Declared before `:id`, which would match this path. */
  @Get('backends')
  backends(@Query() query: unknown) {
    const { before, ...range } = checkHours(query);
    const upTo = before === undefined ? {} : { before: new Date(parseInstant(before)!).toISOString() };
    return this.services.request('metering.backends.compare', { ...range, ...upTo });
  }

  /** A finished run has its report under `report`. A failed run gets 200 too, so that nobody asks again. */
  @Get(':id')
  async show(@Param('id') id: string) {
    requireId('rec', id);
    const run = await this.services.request('billing.reconcile.get', { id });
    return { data: run.state === 'done' ? { ...run, report: this.report(run) } : run };
  }

  private report({ report }: Extract<ReconcileRun, { state: 'done' }>) {
    return { ...report, currency: this.config.current.currency };
  }
}
