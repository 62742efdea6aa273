import { eventually, onceServed } from '@tollgate/testing';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Deployment } from './deployment';
import { complete, createTenant } from './fixtures';
import type { StandaloneProcess } from './standalone-process';

/** For a start of a worker on a busy machine. */
const AGAIN_TIMEOUT_MS = 90_000;
const HELLO = { messages: [{ role: 'user', content: 'hello' }], max_tokens: 1 };
const REFUSED = 'the old configuration stays in force: ';

interface Workers {
  tollgate: Deployment;
  instance(): StandaloneProcess;
  /** Their process ids. */
  workers(): number[];
  /** The processes that have logged a text, with how often. */
  loggedBy(text: string): Map<number, number>;
  readiness(): Promise<{ status: string }>;
}

export function workersConfigTests({ tollgate, instance, workers, loggedBy, readiness }: Workers): void {
  const file = () => join(instance().dataDirectory!, 'tollgate.yaml');
  const processes = () => [instance().child.pid!, ...workers()];
  const loggedTimes = (text: string) => processes().map((pid) => loggedBy(text).get(pid) ?? 0);

  /** Replaces the file in one step, and resolves when every process has logged this once more. */
  async function write(text: string, logged: string): Promise<void> {
    const before = loggedTimes(logged);
    writeFileSync(`${file()}.new`, text);
    renameSync(`${file()}.new`, file());
    await eventually(() => expect(loggedTimes(logged)).toEqual(before.map((times) => times + 1)));
  }

  describe('the configuration of workers', () => {
    let key: string;
    let whole: string;
    let withoutProfile: string;
    beforeAll(async () => {
      ({ key } = await createTenant(tollgate.ready, 1_000, 'slow'));
      whole = readFileSync(file(), 'utf8');
      withoutProfile = whole.replace(/ *- \{ id: slow.*\n/, '');
    });
    const served = async () => {
      const { status } = await onceServed(() => complete(tollgate.ready, key, HELLO));
      expect(status).toBe(200);
    };

    it('is not one that the books refuse, as in the first process', async () => {
      await write(withoutProfile, `${REFUSED}plans: profile slow of plan default`);
      await served();
      await write(whole, 'configuration read again');
    });

    it.each([
      ['cannot be read', () => 'models: [', REFUSED],
      ['the books refuse', () => withoutProfile, `${REFUSED}plans: profile slow of plan default`],
    ])('is that of the first process when one starts again, if the file has one that %s', async (_, text, refused) => {
      await write(text(), refused);
      const failed = loggedBy('a worker could not start').size;
      const before = workers();
      process.kill(before[0]!, 'SIGKILL');
      // It has ended, and the first process has started another one with its version.
      await eventually(() => expect(workers()).not.toContain(before[0]));
      await eventually(() => expect(workers()).toHaveLength(before.length));
      await eventually(async () => expect((await readiness()).status).toBe('ok'), { timeoutMs: AGAIN_TIMEOUT_MS });
      expect(loggedBy('a worker could not start').size).toBe(failed);
      await served();
      // The new worker follows the file as the others do.
      await write(whole, 'configuration read again');
    });
  });
}
