import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ComposedDeployment } from '../../e2e/composed';

/** How a line of Redis' function libraries asks for the time, and what it asks instead. */
const ASKS_TIME = `redis.call('TIME')`;
const asksShifted = (seconds: number) =>
  `(function() local t = redis.call('TIME') t[1] = tostring(tonumber(t[1]) + ${seconds}) return t end)()`;
const ANY_SHIFTED = `(function() local t = .* return t end)()`;

/** The clocks of running containers, which can be set. The folder is to be mounted into the services (clocks.yml), by the environment of the deployment. */
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

  /** What the function libraries take for Redis' time: each is loaded anew with another way of asking for it. What loads them meanwhile (an emptied Redis) sets it right. */
  async setRedis(tollgate: ComposedDeployment, container: string, offsetMs: number): Promise<void> {
    const edit =
      offsetMs === 0
        ? `s/${pattern(ANY_SHIFTED)}/${ASKS_TIME}/`
        : `s/${pattern(ASKS_TIME)}/${asksShifted(offsetMs / 1_000)}/`;
    const script = `set -e
      for name in $(redis-cli --raw FUNCTION LIST | grep -A1 '^library_name$' | grep '^tollgate_'); do
        redis-cli --raw FUNCTION LIST LIBRARYNAME "$name" WITHCODE | sed -n '/^#!lua/,$p' | sed "${edit}" | redis-cli -x FUNCTION LOAD REPLACE
      done`;
    await tollgate.docker('exec', container, 'sh', '-c', script);
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** As a basic regular expression of sed, with `.*` as it is. */
const pattern = (text: string) => text.replace(/[[\]^$/]/g, '\\$&').replace(/\.(?!\*)/g, '\\.');
