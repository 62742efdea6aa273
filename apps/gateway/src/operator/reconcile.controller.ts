import { Controller, HttpCode, Post, UseGuards } from '@nestjs/common';
import { Messages } from '@tollgate/messaging';
import { ConfigSource } from '@tollgate/runtime';
import { OPERATOR_PREFIX } from './routes';
import { SecretGuard } from './secret-guard';

/** It reads all the books. */
const RECONCILE_DEADLINE_MS = 60_000;

@Controller(`${OPERATOR_PREFIX}/reconcile`)
@UseGuards(SecretGuard)
export class ReconcileController {
  constructor(
    private readonly messages: Messages,
    private readonly config: ConfigSource,
  ) {}

  /** 200 also when it finds differences: they are the answer. */
  @Post()
  @HttpCode(200)
  async reconcile() {
    const report = await this.messages.request('billing.reconcile', {}, { deadlineMs: RECONCILE_DEADLINE_MS });
    return { data: { ...report, currency: this.config.current.currency } };
  }
}
