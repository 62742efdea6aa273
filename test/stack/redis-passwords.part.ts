import { RedisCredentialStore } from '@tollgate/credentials';
import type { RedisUser } from '@tollgate/redis';
import { eventually } from '@tollgate/testing';
import { aRecord } from '../../libs/credentials/src/record.fixture';

/** The server with the users of the stack. */
interface Server {
  loadAs(user: RedisUser): Promise<{ code: number }>;
  credentialsOf(user: RedisUser): Promise<RedisCredentialStore>;
  admin(...command: string[]): Promise<string>;
  urlOf(user: string): string;
  passwordOf(user: string): string;
  /** Closes a store after the test. */
  kept(store: RedisCredentialStore): RedisCredentialStore;
}

export function passwordTests({ loadAs, credentialsOf, admin, urlOf, passwordOf, kept }: Server): void {
  it('changes without a stop: a user may have two, and connections stay when the former one goes', async () => {
    expect((await loadAs('functions')).code).toBe(0);
    const record = aRecord();
    const before = await credentialsOf('gateway');
    await admin('ACL', 'SETUSER', 'gateway', '>the-next-password');
    const next = urlOf('gateway').replace(passwordOf('gateway'), 'the-next-password');
    /** Tries again, because a busy machine may take longer than a start waits. */
    const opens = (url: string) =>
      eventually(async () => {
        const opened = kept(new RedisCredentialStore({ url }))
          .start()
          .then(
            () => 'opened',
            (error: Error) => error.message,
          );
        expect(await opened).toMatch(/^opened$|refuses this user and password/);
        return opened;
      });
    try {
      expect([await opens(urlOf('gateway')), await opens(next)]).toEqual(['opened', 'opened']);
      await admin('ACL', 'SETUSER', 'gateway', `<${passwordOf('gateway')}`);
      expect(await opens(urlOf('gateway'))).toMatch(/refuses this user and password/);
      expect(await opens(next)).toBe('opened');
      // The connection of before is still signed in.
      const auth = await credentialsOf('auth');
      auth.refillWith(() => auth.put([record]));
      await eventually(async () => expect(await before.lookup(record.hash)).toEqual(record));
    } finally {
      await admin('ACL', 'SETUSER', 'gateway', `>${passwordOf('gateway')}`, '<the-next-password');
    }
  });
}
