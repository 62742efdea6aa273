import { RequestError, UnavailableError } from '@tollgate/contracts';
import { elapsedMs, tenantRow } from '@tollgate/testing';
import type { Messages } from './messages';
import { useInstances, type MessagesStore } from './messages-store.fixture';

/**
 * The guarantees of request–reply, for every implementation of the messages seam. `reach`: whether a request reaches
 * only handlers of the same instance (standalone: all services in one process), or handlers of other instances too.
 */
export function requestsSuite(
  name: string,
  reach: 'same-instance' | 'other-instances',
  createStore: () => Promise<Pick<MessagesStore, 'open' | 'close'>>,
): void {
  describe(`request–reply on ${name}`, () => {
    const subject = 'auth.tenants.get';
    const tenant = tenantRow('ten_1');
    /** The answering instances may just be joining. */
    const patient = { deadlineMs: 15_000 };
    const { open } = useInstances(createStore);

    /** The instance to send from. Another instance (or the same, by `reach`) answers as `register` sets it up. */
    async function asking(register: (messages: Messages) => void): Promise<Messages> {
      const answering = open();
      register(answering);
      await answering.start();
      if (reach === 'same-instance') return answering;
      const messages = open();
      await messages.start();
      return messages;
    }

    it('carries request and reply as JSON, so the two sides share no objects', async () => {
      const request = { tenantId: 'ten_1' };
      let got: unknown;
      const messages = await asking((m) =>
        m.handle(subject, async (received) => {
          got = received;
          return { ...tenant, createdAt: new Date(tenant.createdAt) as never };
        }),
      );
      const reply = await messages.request(subject, request, patient);
      expect(got).toEqual(request);
      expect(got).not.toBe(request);
      expect(reply).toEqual(tenant);
      expect(reply).not.toBe(tenant);
    });

    it('answers many requests at the same time, each with its own reply', async () => {
      const messages = await asking((m) => m.handle(subject, async ({ tenantId }) => ({ ...tenant, id: tenantId })));
      const ids = Array.from({ length: 200 }, (_, index) => `ten_${index}`);
      const replies = await Promise.all(ids.map((tenantId) => messages.request(subject, { tenantId }, patient)));
      expect(replies.map(({ id }) => id)).toEqual(ids);
    });

    it('passes a RequestError of the handler to the caller, with code and message', async () => {
      const messages = await asking((m) =>
        m.handle(subject, async () => {
          throw new RequestError('not_found', 'no such tenant');
        }),
      );
      const error = await messages.request(subject, { tenantId: 'x' }, patient).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(RequestError);
      expect(error).toMatchObject({ code: 'not_found', message: 'no such tenant' });
    });

    it('passes a RequestError without a text as one without a text', async () => {
      const messages = await asking((m) =>
        m.handle(subject, async () => {
          throw new RequestError('not_found');
        }),
      );
      const error = await messages.request(subject, { tenantId: 'x' }, patient).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'not_found', publicMessage: undefined });
    });

    it('turns any other error into an UnavailableError without internal details', async () => {
      const messages = await asking((m) =>
        m.handle(subject, async () => {
          throw Object.assign(new Error('password of the database is hunter2'), { code: 'inner' });
        }),
      );
      const error = await messages.request(subject, { tenantId: 'x' }, patient).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(UnavailableError);
      expect(String(error)).not.toMatch(/hunter2|password/);
      expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toMatch(/hunter2/);
    });

    it('gives up at the deadline, whatever the handler does', async () => {
      const messages = await asking((m) => m.handle(subject, () => new Promise(() => {})));
      const started = Date.now();
      const request = () => messages.request(subject, { tenantId: 'x' }, { deadlineMs: 200 });
      const givenUpMs = await elapsedMs(() => expect(request()).rejects.toThrow(UnavailableError));
      expect(Date.now() - started).toBeGreaterThanOrEqual(190);
      expect(givenUpMs).toBeLessThan(2_000);
    });

    it('is unavailable, within the deadline, when no process handles the subject', async () => {
      const messages = await asking(() => {});
      await expect(messages.request(subject, { tenantId: 'x' }, { deadlineMs: 500 })).rejects.toThrow(UnavailableError);
    });

    it('works while consuming is stopped, and ends with close', async () => {
      const messages = await asking((m) => m.handle(subject, async () => tenant));
      await messages.stopConsuming();
      expect(await messages.request(subject, { tenantId: 'x' }, patient)).toEqual(tenant);
      await messages.close();
      await expect(messages.request(subject, { tenantId: 'x' })).rejects.toThrow(UnavailableError);
      await expect(messages.publish('credit-news', [])).rejects.toThrow(UnavailableError);
    });

    it('accepts one handler for each subject', async () => {
      await asking((m) => {
        m.handle(subject, async () => tenant);
        expect(() => m.handle(subject, async () => tenant)).toThrow(/already/);
      });
    });
  });
}
