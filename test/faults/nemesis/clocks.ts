import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ComposedDeployment } from '../../e2e/composed';

/** The call by which the function libraries of Redis read the time, and its replacement. */
const ASKS_TIME = `redis.call('TIME')`;
const asksShifted = (seconds: number) =>
  `(function() local t = redis.call('TIME') t[1] = tostring(tonumber(t[1]) + ${seconds}) return t end)()`;
const ANY_SHIFTED = /\(function\(\) local t = redis\.call\('TIME'\) t\[1\] = .*? return t end\)\(\)/g;

/**
 * Sets the clocks of running containers. The environment of the deployment mounts the folder into the services
 * (clocks.yml).
 */
export class Clocks {
  readonly directory = mkdtempSync(join(tmpdir(), 'tollgate-clocks-'));

  constructor() {
    // The services run as another user and must be able to read it.
    chmodSync(this.directory, 0o755);
    copyFileSync(join(__dirname, 'clock-preload.mjs'), join(this.directory, 'clock-preload.mjs'));
  }

  /** Shifts a clock; 0 sets it right. A process uses the new time within about 50 ms, also one that starts later. */
  async setService(tollgate: ComposedDeployment, container: string, offsetMs: number): Promise<void> {
    const host = (await tollgate.docker('inspect', '--format', '{{.Config.Hostname}}', container)).trim();
    writeFileSync(join(this.directory, host), String(offsetMs));
  }

  /**
   * Shifts the time that the function libraries of Redis read, by loading each with another call. If they are loaded
   * again meanwhile (an emptied Redis), the time is right again.
   */
  async setRedis(tollgate: ComposedDeployment, offsetMs: number): Promise<void> {
    const listed = await tollgate.redis('--json', 'FUNCTION', 'LIST', 'LIBRARYNAME', 'tollgate_*', 'WITHCODE');
    const libraries = JSON.parse(listed) as { library_name: string; library_code: string }[];
    for (const { library_name: name, library_code: code } of libraries) {
      const right = code.replaceAll(ANY_SHIFTED, ASKS_TIME);
      const shown = offsetMs === 0 ? right : right.replaceAll(ASKS_TIME, asksShifted(offsetMs / 1_000));
      const answer = await tollgate.redis('FUNCTION', 'LOAD', 'REPLACE', shown);
      if (answer.trim() !== name) throw new Error(`Redis did not take ${name}: ${answer}`);
    }
    if (libraries.length === 0) throw new Error('Redis has no function library, so its clock was not moved');
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}
