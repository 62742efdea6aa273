import { logger } from '../logging';

export type Step = () => Promise<unknown> | unknown;

/** Takes started parts down in reverse order, also when a later part fails to start. */
export class TakeDown {
  private readonly steps: Step[] = [];
  private running: Promise<void> | undefined;

  constructor(private readonly component: string) {}

  /** Called when a part runs. Several steps of one call are also taken in reverse order. */
  add(...steps: readonly Step[]): void {
    this.steps.push(...steps);
  }

  /** Runs once, however often it is called. Never rejects: a failed step is logged, and the others follow. */
  run(): Promise<void> {
    return (this.running ??= this.runSteps());
  }

  private async runSteps(): Promise<void> {
    for (let step = this.steps.pop(); step; step = this.steps.pop()) {
      try {
        await step();
      } catch (error) {
        logger(this.component).error({ err: error }, 'a step of the shutdown failed; the others follow');
      }
    }
  }
}
