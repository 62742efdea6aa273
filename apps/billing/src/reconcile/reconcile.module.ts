import { Module } from '@nestjs/common';
import { whileRunning } from '@tollgate/runtime';
import { runTask } from '../run-task';
import { Charges } from './charges';
import { HeadsLogger } from './heads';
import { differences } from './metrics';
import { ReconcileController } from './reconcile.controller';
import { Reconciler } from './reconciler';
import { ReconcileRuns } from './runs';
import { RetiredMonths } from './retired-months';
import { StateAudit } from './state-audit';
import { Stores } from './stores';
import { UsageAudit } from './usage-audit';

const LOG_HEADS_EVERY_MS = 60 * 60 * 1_000;

const logHeads = whileRunning([HeadsLogger], (heads) =>
  runTask('log the heads of the journal', LOG_HEADS_EVERY_MS, () => heads.log()),
);

const differencesGauge = whileRunning([ReconcileRuns], (runs) => differences.from(() => runs.differences()));

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
    HeadsLogger,
    logHeads,
    differencesGauge,
  ],
  exports: [Stores],
})
export class ReconcileModule {}
