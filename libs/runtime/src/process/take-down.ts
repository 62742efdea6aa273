import { logger } from '../logging';

export type Step = () => Promise<unknown> | unknown;

/** What was started is taken down in the opposite order, also when a later part does not start. */
export class TakeDown {
  private readonly steps: Step[] = [];
  private running: Promise<void> | undefined;

  constructor(private readonly component: string) {}

  /** Called when a part runs; several steps of one call are taken last first, too. */
  add(...steps: readonly Step[]): void {
    this.steps.push(...steps);
  }

  /** Once, whoever asks. Never rejects: a step that fails is logged, and the others go on. */
  run(): Promise<void> {
    return (this.running ??= this.runSteps());
  }

  private async runSteps(): Promise<void> {
    for (let step = this.steps.pop(); step; step = this.steps.pop()) {
      try {
        await step();
      } catch (error) {
        logger(this.component).error({ err: error }, 'a step of the shutdown failed; the others go on');
      }
    }
  }
}
