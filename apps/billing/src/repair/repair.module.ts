import { Module } from '@nestjs/common';
import { WhileRunning } from '@tollgate/runtime';
import { BILLING_OPTIONS, type ServiceOptions } from '../options';
import { runTask } from '../run-task';
import { ReconcileModule } from '../reconcile/reconcile.module';
import { PoisonWatch } from './poison-watch';
import { RepairController } from './repair.controller';
import { TenantRepairs } from './tenant-repairs';

const ROUNDS = 'compare the admission store with the books';

const watchRounds = {
  provide: Symbol(ROUNDS),
  inject: [PoisonWatch, BILLING_OPTIONS],
  useFactory: (watch: PoisonWatch, { watchEveryMs }: ServiceOptions) =>
    watchEveryMs === null
      ? null
      : new WhileRunning(() => runTask(ROUNDS, watchEveryMs, (ending) => watch.round(ending))),
};

@Module({
  imports: [ReconcileModule],
  controllers: [RepairController],
  providers: [TenantRepairs, PoisonWatch, watchRounds],
  exports: [PoisonWatch],
})
export class RepairModule {}
