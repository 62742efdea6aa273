import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ComposedDeployment } from '../../e2e/composed';

/** How Redis' function libraries ask for the time, and what they ask instead. */
const ASKS_TIME = `redis.call('TIME')`;
const asksShifted = (seconds: number) =>
  `(function() local t = redis.call('TIME') t[1] = tostring(tonumber(t[1]) + ${seconds}) return t end)()`;
const ANY_SHIFTED = /\(function\(\) local t = redis\.call\('TIME'\) t\[1\] = .*? return t end\)\(\)/g;

/**
 * The clocks of running containers, which can be set. The folder is to be mounted into the services (clocks.yml), by
 * the environment of the deployment.
 */
export class Clocks {
  readonly directory = mkdtempSync(join(tmpdir(), 'tollgate-clocks-'));

  constructor() {
    // Read by the services, which do not run as us.
    chmodSync(this.directory, 0o755);
    copyFileSync(join(__dirname, 'clock-preload.mjs'), join(this.directory, 'clock-preload.mjs'));
  }

  /** 0: right again. The process takes it up within some 50 ms, also one that is started later. */
  async setService(tollgate: ComposedDeployment, container: string, offsetMs: number): Promise<void> {
    const host = (await tollgate.docker('inspect', '--format', '{{.Config.Hostname}}', container)).trim();
    writeFileSync(join(this.directory, host), String(offsetMs));
  }

  /**
   * What the function libraries take for Redis' time: each is loaded anew with another way of asking for it. What loads
   * them meanwhile (an emptied Redis) sets it right.
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
