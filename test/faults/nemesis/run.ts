import { ComposedDeployment } from '../../e2e/composed';
import { Clocks } from './clocks';
import { Control } from './control';
import { nemesisEnvironment } from './environment';
import { planOf } from './plan';
import { keepEvidence, planText, roundText, summaryText } from './report';
import { playRound, type RoundResult } from './round';

/** The duration of the fastest round. It determines how many rounds are planned. */
const LEAST_ROUND_MS = 20_000;

export interface RunOptions {
  seed: number;
  minutes: number;
  /** Plays only these rounds of the plan, from 1. */
  only: readonly number[];
  /** The folder for the evidence of wrong rounds. */
  folder: string;
  say: (text: string) => void;
}

/** `npm run nemesis`: starts its own deployment, plays the rounds of a plan until the time is over, and reports. */
export class NemesisRun {
  private readonly clocks = new Clocks();
  private readonly tollgate = new ComposedDeployment(nemesisEnvironment(this.clocks));
  private control: Control | undefined;
  private starting: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: RunOptions) {}

  /** Returns whether all rounds were right. */
  async play(): Promise<boolean> {
    const { seed, minutes, only, say } = this.options;
    const all = planOf(seed, Math.max(Math.ceil((minutes * 60_000) / LEAST_ROUND_MS), ...only));
    const planned = only.length > 0 ? all.filter(({ number }) => only.includes(number)) : all;
    say(`Seed ${seed}: as many of these rounds as fit into ${minutes} minutes.\n${planText(planned)}\nStarting …`);
    this.starting = this.tollgate.start();
    await this.starting;
    const control = (this.control = await Control.start(this.tollgate));
    const untilMs = Date.now() + minutes * 60_000;
    const results: RoundResult[] = [];
    for (const round of planned) {
      if (Date.now() >= untilMs) break;
      const result = await playRound(this.tollgate, this.clocks, control, round);
      say(roundText(result));
      if (result.findings.length > 0)
        say(`    kept in ${await keepEvidence(this.tollgate, this.options.folder, result)}`);
      // The outcomes of an hour are too much to keep.
      results.push({ ...result, outcomes: [], books: new Map() });
    }
    say(`\nSeed ${seed}\n${summaryText(results)}`);
    return results.length > 0 && results.every(({ findings }) => findings.length === 0);
  }

  /** Removes the deployment at any time. */
  async remove(): Promise<void> {
    await this.starting.catch(() => {});
    await this.tollgate.remove();
    this.control?.stop();
    this.clocks.remove();
  }
}
