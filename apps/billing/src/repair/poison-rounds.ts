import { Inject, Injectable, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { InjectOptions, type ServiceOptions } from '../options';
import { PeriodicTask } from '../periodic-task';
import { PoisonWatch } from './poison-watch';

/** Has the watch look at all tenants repeatedly. */
@Injectable()
export class PoisonRounds implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly task: PeriodicTask | null;

  constructor(
    @Inject(PoisonWatch) private readonly watch: PoisonWatch | null,
    @InjectOptions() { watchEveryMs }: ServiceOptions,
  ) {
    const name = 'hold the admission store against the books';
    this.task = watch && watchEveryMs !== null ? new PeriodicTask(name, watchEveryMs, () => watch.round()) : null;
  }

  onApplicationBootstrap(): void {
    this.task?.onApplicationBootstrap();
  }

  /** Together, because a round in progress ends only when the watch stops. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([this.watch?.stop(), this.task?.beforeApplicationShutdown()]);
  }
}
