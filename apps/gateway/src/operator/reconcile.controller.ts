import { Controller, HttpCode, Post, UseGuards } from '@nestjs/common';
import { Messages } from '@tollgate/messaging';
import { OPERATOR_PREFIX } from './routes';
import { SecretGuard } from './secret-guard';

/** It reads all the books. */
const RECONCILE_DEADLINE_MS = 60_000;

@Controller(`${OPERATOR_PREFIX}/reconcile`)
@UseGuards(SecretGuard)
export class ReconcileController {
  constructor(private readonly messages: Messages) {}

  /** 200 also when it finds differences: they are the answer. */
  @Post()
  @HttpCode(200)
  async reconcile() {
    return { data: await this.messages.request('billing.reconcile', {}, { deadlineMs: RECONCILE_DEADLINE_MS }) };
  }
}
