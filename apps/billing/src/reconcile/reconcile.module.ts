import { Module } from '@nestjs/common';
import { taskProvider } from '../task-provider';
import { Charges } from './charges';
import { HeadsLogger } from './heads';
import { ReconcileGauge } from './reconcile-gauge';
import { ReconcileController } from './reconcile.controller';
import { Reconciler } from './reconciler';
import { ReconcileRuns } from './runs';
import { RetiredMonths } from './retired-months';
import { StateAudit } from './state-audit';
import { Stores } from './stores';
import { UsageAudit } from './usage-audit';

const LOG_HEADS_EVERY_MS = 60 * 60 * 1_000;

const logHeads = taskProvider('log the heads of the journal', LOG_HEADS_EVERY_MS, [HeadsLogger], (heads: HeadsLogger) =>
  heads.log(),
);

@Module({
  controllers: [ReconcileController],
  providers: [
    Reconciler,
    UsageAudit,
    StateAudit,
    Charges,
    RetiredMonths,
    Stores,
    ReconcileRuns,
    ReconcileGauge,
    HeadsLogger,
    logHeads,
  ],
  exports: [Stores],
})
export class ReconcileModule {}
