import { newId, type Author } from '@tollgate/contracts';
import type { FastifyRequest } from 'fastify';
import type { Caller } from '../../access/allow';
import { MAX_INVITATION_MAILS, MAX_MAILS_TO_ONE, MembersController } from './members.controller';

const requestFor = (email: string) =>
  ({
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify({ email, role: 'viewer' })),
  }) as unknown as FastifyRequest;

/** The controller, with services that only count the mails. */
function controller({ isConfigured = true } = {}) {
  let mails = 0;
  const mailer = { isConfigured, sendInvitation: () => Promise.resolve(void mails++) };
  const invitations = { create: () => Promise.resolve({ link: 'l' }), noteMailed: () => Promise.resolve() };
  const services = { request: () => Promise.resolve({ name: 'Acme' }) };
  const made = new MembersController(
    ...([{}, invitations, mailer, services] as unknown as ConstructorParameters<typeof MembersController>),
  );
  let people = 0;
  /** By another person each time, because the invitations of one person are limited, too. */
  const invite = (tenantId: string, email = `${people}@example.com`) => {
    const caller = { userId: `person-${++people}`, role: 'owner' } as Caller;
    return made.invite(tenantId, caller, {} as Author, requestFor(email));
  };
  return { invite, mails: () => mails };
}

it('the invitations that a tenant mails in an hour are limited, for all its people and for it alone', async () => {
  const { invite, mails } = controller();
  const [tenant, other] = [newId('ten'), newId('ten')];
  for (let time = 0; time < MAX_INVITATION_MAILS; time++) await invite(tenant);
  await expect(invite(tenant)).rejects.toMatchObject({
    code: 'rate_limited',
    message: expect.stringContaining(`at most ${MAX_INVITATION_MAILS} invitations`) as string,
  });
  expect(mails()).toBe(MAX_INVITATION_MAILS);
  await invite(other);
  expect(mails()).toBe(MAX_INVITATION_MAILS + 1);
});

it('a tenant mails one address only so often in an hour, however it is written, and others still can', async () => {
  const { invite, mails } = controller();
  const [tenant, other] = [newId('ten'), newId('ten')];
  for (let time = 0; time < MAX_MAILS_TO_ONE; time++) await invite(tenant, 'a@example.com');
  await expect(invite(tenant, 'A@Example.com')).rejects.toMatchObject({
    code: 'rate_limited',
    message: expect.stringContaining('to one address') as string,
  });
  await invite(tenant, 'b@example.com');
  await invite(other, 'a@example.com');
  expect(mails()).toBe(MAX_MAILS_TO_ONE + 2);
});

it('invitations without mail are not counted', async () => {
  const { invite } = controller({ isConfigured: false });
  const tenant = newId('ten');
  for (let time = 0; time <= MAX_INVITATION_MAILS; time++)
    expect(await invite(tenant, 'a@example.com')).toMatchObject({ link: 'l' });
});
