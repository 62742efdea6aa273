import type { Author, ConsoleAction } from '@tollgate/contracts';
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { type Change, type Changes, type Origin, personAs } from '../access/changes';

type Fields = Pick<Change, 'before' | 'after'>;

/** A call of the sign-in library, which tells its hooks neither who called nor from where. */
export class AccountCall {
  /** Why the call must fail. The library does not pass it on. */
  failure: Error | undefined;
  /** Whose session it opened, also one that only waited for the second factor. */
  openedFor: string | undefined;
  /** That session. */
  openedSession: string | undefined;
  private isNew = false;

  constructor(
    private readonly changes: Changes,
    private readonly from: Origin,
    /** Null: nobody is signed in, or the call changes no account. */
    private readonly person: { userId: string; email: string } | null,
    private readonly beforePassword: (userId: string) => Promise<void>,
  ) {}

  /** The signed-in person changes their own account. Rejects without a row, so that the change is not made. */
  async own(action: ConsoleAction, fields: Fields = {}): Promise<void> {
    const { person } = this;
    if (!person) throw this.failed(new Error('nobody is signed in, and an account would be changed'));
    await this.record(personAs(person.userId, person.email, this.from), action, fields);
  }

  /** The signed-in person changes their password. */
  async changePassword(): Promise<void> {
    await this.own('password.change');
    try {
      await this.beforePassword(this.person!.userId);
    } catch (error) {
      throw this.failed(error);
    }
  }

  /** The provider creates an account. The id of its person. */
  async create(email: string): Promise<string> {
    this.isNew = true;
    const id = randomUUID();
    await this.record(personAs(id, email, this.from), 'account.create', { after: { name: email } });
    return id;
  }

  /**
   * The provider is connected with an account. A new account has no row of its own for this: the row that made it says
   * enough.
   */
  async link(userId: string, email: string): Promise<void> {
    if (!this.isNew) await this.record(personAs(userId, email, this.from), 'account.link', { after: { name: email } });
  }

  /** The error for the library, which knows only that the call failed. */
  failed(error: unknown): Error {
    this.failure = error instanceof Error ? error : new Error(String(error));
    return this.failure;
  }

  private async record(by: Author & { id: string }, action: ConsoleAction, fields: Fields): Promise<void> {
    try {
      await this.changes.record(by, { action, target: by.id, ...fields });
    } catch (error) {
      throw this.failed(error);
    }
  }
}

/** The call in progress. */
export const accountCall = new AsyncLocalStorage<AccountCall>();

/** Throws outside of calls: a change that nobody would log is not made. */
export function callInProgress(): AccountCall {
  const call = accountCall.getStore();
  if (!call) throw new Error('an account would be changed outside of a call, without a row in the audit log');
  return call;
}

/**
 * Hooks of the library, which run just before it changes an account. So a change that it refuses has no row in the
 * audit log, and one without its row is not made.
 * @param emailOf the address that the provider has shown in this call
 */
export const accountHooks = (emailOf: () => string) => ({
  user: {
    create: {
      before: async (user: { email: string }) => {
        const id = await callInProgress().create(user.email);
        return { data: { id } };
      },
    },
    update: {
      before: async ({ twoFactorEnabled }: Record<string, unknown>) => {
        if (typeof twoFactorEnabled === 'boolean')
          await callInProgress().own(twoFactorEnabled ? 'totp.enable' : 'totp.disable');
      },
    },
  },
  account: {
    create: {
      before: async ({ userId }: { userId: string }) => {
        await callInProgress().link(userId, emailOf());
      },
    },
    update: {
      before: async ({ password }: Record<string, unknown>) => {
        if (typeof password === 'string') await callInProgress().changePassword();
      },
    },
  },
});
