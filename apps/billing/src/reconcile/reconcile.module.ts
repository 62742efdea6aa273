import { Module } from '@nestjs/common';
import { periodicTask } from '../periodic-task';
import { Charges } from './charges';
import { HeadsTeller } from './heads';
import { ReconcileController } from './reconcile.controller';
import { Reconciler } from './reconciler';
import { ReconcileRuns } from './runs';
import { Stores } from './stores';

const TELL_HEADS_EVERY_MS = 60 * 60 * 1_000;

const tellHeads = periodicTask(
  'tell the heads of the journal',
  TELL_HEADS_EVERY_MS,
  [HeadsTeller],
  (heads: HeadsTeller) => heads.tell(),
);

@Module({
  controllers: [ReconcileController],
  providers: [Reconciler, Charges, Stores, ReconcileRuns, HeadsTeller, tellHeads],
  exports: [Stores],
})
export class ReconcileModule {}
