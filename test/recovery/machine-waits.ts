import { setTimeout } from 'node:timers/promises';

const PAUSE_MS = 5;
/**
 * A refusal waits for the machine this many times: its client and the gateway, a timer of the gateway, and both again.
 * A probe waits once.
 */
const WAITS_OF_A_REQUEST = 5;

/**
 * Measures how long a busy machine keeps requests waiting at a gateway, by requests that need no server: a probe of
 * `/livez`, which its event loop answers at once. Tests that guarantee a time allow as much.
 */
export class MachineWaits {
  private longestMs = 0;
  private going = true;
  private readonly asking: Promise<void>;

  /** @param healthUrl of the gateway */
  constructor(private readonly healthUrl: string) {
    this.asking = this.ask();
    // `end` reports a failure. A test that has failed does not call it, and the gateway ends.
    this.asking.catch(() => {});
  }

  /** Ends the measurement. Returns by how much a request at the gateway may be late. */
  async end(): Promise<number> {
    this.going = false;
    await this.asking;
    return WAITS_OF_A_REQUEST * this.longestMs;
  }

  private async ask(): Promise<void> {
    while (this.going) {
      const fromMs = performance.now();
      await (await fetch(`${this.healthUrl}/livez`)).text();
      this.longestMs = Math.max(this.longestMs, performance.now() - fromMs);
      await setTimeout(PAUSE_MS);
    }
  }
}
