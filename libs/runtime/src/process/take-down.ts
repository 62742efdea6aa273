import { logger } from '../logging/logging';

/**
 * The order in which every program stops. Nest's hooks cannot give it: they order the parts of one application, and the
 * first of them ends its consumers. Before that, requests end and their usage goes through the consumers. A program has
 * up to three applications (public port, operator port, console), and its stores and servers outlive them.
 */
export const STOP_ORDER = [
  /** Reports "not ready", and still serves until load balancers have noticed. */
  'announce',
  /** Lets requests finish, and ends the others. */
  'requests',
  /** Publishes the usage of the requests, while everything else still runs. */
  'usage',
  /** Closes applications: each stops consuming, then the hooks of its parts flush and close them. */
  'applications',
  /** Closes messages and stores, which the hooks still used. */
  'connections',
  /** Ends what all others need: the database, the configuration, traces and probes. */
  'basics',
] as const;

export type StopPhase = (typeof STOP_ORDER)[number];
export type Step = () => Promise<unknown> | unknown;

/** Takes started parts down in STOP_ORDER, within a phase in reverse order, also when a later part fails. */
export class TakeDown {
  private readonly steps: Record<StopPhase, Step[]> = {
    announce: [],
    requests: [],
    usage: [],
    applications: [],
    connections: [],
    basics: [],
  };
  private running: Promise<void> | undefined;

  constructor(private readonly component: string) {}

  /** Called when a part runs. Several steps of one call are also taken in reverse order. */
  add(phase: StopPhase, ...steps: readonly Step[]): void {
    this.steps[phase].push(...steps);
  }

  /** Runs once, however often it is called. Never rejects: a failed step is logged, and the others follow. */
  run(): Promise<void> {
    return (this.running ??= this.runSteps());
  }

  private async runSteps(): Promise<void> {
    for (let step = this.next(); step; step = this.next()) {
      try {
        await step();
      } catch (error) {
        logger(this.component).error({ err: error }, 'a step of the shutdown failed; the others follow');
      }
    }
  }

  /** Looks at all phases again: a start that was interrupted may still add steps. */
  private next(): Step | undefined {
    return STOP_ORDER.map((phase) => this.steps[phase])
      .find(({ length }) => length > 0)
      ?.pop();
  }
}
