import { elapsedMs, eventually, onceServed, type TestDatabase } from '@tollgate/testing';
import type { Fleet, KeyList, Overview, TokenList } from '../../../apps/console/src/api/answers';
import { BrowserSession } from '../running/browser';
import { API, type Role, signIn } from '../running/people';
import { expectWithin } from './promptly';

/** A change never takes this long to arrive, however slow the machine is. */
const ARRIVES_WITHIN_MS = 60_000;
/** What an open page promises. */
const MAX_AGE_MS = 2_000;
const PREFIX = 'data: ';

interface MadeKey {
  id: string;
  key: string;
}

/** The events of a stream, one after the other. Null: it ended. */
class EventReader {
  private text = '';
  private readonly reader: ReadableStreamDefaultReader<string>;

  constructor(answer: Response) {
    this.reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  }

  async next<T>(): Promise<T | null> {
    for (;;) {
      const end = this.text.indexOf('\n\n');
      if (end < 0) {
        const { done, value } = await this.reader.read();
        if (done) return null;
        this.text += value;
        continue;
      }
      const event = this.text.slice(0, end);
      this.text = this.text.slice(end + 2);
      if (event.startsWith(PREFIX)) return JSON.parse(event.slice(PREFIX.length)) as T;
    }
  }

  async until<T>(wanted: (event: T) => boolean): Promise<T | null> {
    for (;;) {
      const event = await this.next<T>();
      if (event === null || wanted(event)) return event;
    }
  }

  cancel(): Promise<void> {
    return this.reader.cancel();
  }
}

/** Streams of live numbers, the fleet, and the playground. */
export function liveTests(
  deployed: () => {
    base: string;
    operator: BrowserSession;
    of: (role: Role) => BrowserSession;
    tenantId: string;
    inferenceUrl: string;
    database: Pick<TestDatabase, 'query'>;
    forgetTries: () => Promise<unknown>;
  },
): void {
  const tenant = () => `${API}/tenants/${deployed().tenantId}`;
  const streams: EventReader[] = [];
  afterEach(async () => {
    await Promise.all(streams.splice(0).map((stream) => stream.cancel()));
  });
  const open = async (browser: BrowserSession, path: string) => {
    const answer = await browser.stream(path, ARRIVES_WITHIN_MS);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
    expect(answer.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    const reader = new EventReader(answer);
    streams.push(reader);
    return reader;
  };

  it('a stream has what its page shows at once, and again when it changes', async () => {
    const stream = await open(deployed().of('viewer'), `${tenant()}/live/overview`);
    const first = await stream.next<Overview>();
    expect(first).toEqual((await deployed().of('viewer').get(`${tenant()}/overview`)).json);
    const before = first!.credit.balanceCents;
    const booking = { kind: 'topup', amountCents: 250, reason: 'live', ref: 'live-1' };
    await deployed().operator.post(`${API}/operator/tenants/${deployed().tenantId}/credit`, booking);
    const after = await stream.until<Overview>(({ credit }) => credit.balanceCents !== before);
    expect(after?.credit.balanceCents).toBe(before + 250);
  });

  it('a change arrives within two seconds of the answer that made it', async () => {
    const { of, operator, tenantId } = deployed();
    const stream = await open(of('viewer'), `${tenant()}/live/overview`);
    let { balanceCents } = (await stream.next<Overview>())!.credit;
    let tries = 0;
    const arrivalMs = async () => {
      const booking = { kind: 'topup', amountCents: 7, reason: 'prompt', ref: `prompt-${++tries}` };
      const answer = await operator.post(`${API}/operator/tenants/${tenantId}/credit`, booking);
      expect(answer.status).toBeLessThan(300);
      balanceCents += booking.amountCents;
      return elapsedMs(async () => {
        const seen = await stream.until<Overview>(({ credit }) => credit.balanceCents >= balanceCents);
        expect(seen?.credit.balanceCents).toBe(balanceCents);
      });
    };
    await expectWithin(MAX_AGE_MS, arrivalMs, () => of('viewer').get(`${tenant()}/overview`));
  });

  it('a refusal arrives within two seconds of its answer, and so does the first use of a key', async () => {
    const { operator, inferenceUrl } = deployed();
    const { id } = (await operator.post(`${API}/operator/tenants`, { name: 'Refused' })).json as { id: string };
    const path = `${API}/tenants/${id}`;
    const makeKey = async () => (await operator.post(`${path}/keys`, { name: 'refused' })).json as MadeKey;
    const refuse = async ({ key }: MadeKey) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const body = JSON.stringify({ model: 'sim-small', messages: [{ role: 'user', content: 'Hello' }] });
      const answer = await onceServed(() =>
        fetch(`${inferenceUrl}/chat/completions`, { method: 'POST', headers, body }),
      );
      expect([answer.status, await answer.json()]).toMatchObject([402, { error: { code: 'credit_exhausted' } }]);
    };
    const stream = await open(operator, `${path}/live/overview`);
    expect((await stream.next<Overview>())?.refusals).toEqual([]);
    let refused = 0;
    const key = await makeKey();
    const refusalMs = async () => {
      await refuse(key);
      refused++;
      // A busy store may have refused it with another code before.
      const counted = ({ refusals }: Overview) =>
        refusals.some(({ code, requests }) => code === 'credit_exhausted' && requests === refused);
      return elapsedMs(() => stream.until<Overview>(counted));
    };
    await expectWithin(MAX_AGE_MS, refusalMs, () => operator.get(`${path}/overview`));

    const useMs = async () => {
      const unused = await makeKey();
      await refuse(unused);
      return elapsedMs(() =>
        eventually(async () => {
          const { data } = (await operator.get(`${path}/keys`)).json as KeyList;
          expect(data.find((row) => row.id === unused.id)?.lastUsedAt).toEqual(expect.any(String));
        }),
      );
    };
    await expectWithin(MAX_AGE_MS, useMs, () => operator.get(`${path}/keys`));
  });

  it('a stream ends with its session, and with the role that may see it', async () => {
    const { base, of, database, forgetTries, tenantId } = deployed();
    await forgetTries();
    const browser = new BrowserSession(base);
    await signIn(browser, 'admin@example.com');
    const tokens = await open(browser, `${tenant()}/live/tokens`);
    expect((await tokens.next<TokenList>())?.data).toBeInstanceOf(Array);
    await browser.post(`${API}/auth/sign-out`);
    expect(await tokens.until(() => false)).toBeNull();

    const overview = await open(of('admin'), `${tenant()}/live/tokens`);
    await overview.next();
    const role = (name: string) =>
      database.query(
        `UPDATE console.membership SET role = $1 WHERE tenant_id = $2
         AND user_id = (SELECT id FROM console."user" WHERE email = 'admin@example.com')`,
        [name, tenantId],
      );
    await role('viewer');
    expect(await overview.until(() => false)).toBeNull();
    await role('admin');
  });

  it('the fleet has sums over all tenants, the backends as the gateways see them, and the newest run', async () => {
    const { operator, database } = deployed();
    const started = await operator.post(`${API}/operator/reconcile`);
    const stream = await open(operator, `${API}/operator/live/fleet`);
    const fleet = await stream.until<Fleet>(({ reconcile }) => reconcile?.state === 'done');
    expect(fleet?.reconcile).toMatchObject({ id: started.json.id, report: { ok: true } });
    const [{ balance }] = (await database.query('SELECT sum(balance_cents) AS balance FROM billing.tenant_books')) as [
      { balance: string },
    ];
    expect(fleet?.balanceCents).toBe(balance);
    expect(fleet).toMatchObject({ openRefusedEvents: 0, rejectedCharges: 0 });
    expect(fleet?.backends[0]).toMatchObject({ drainedAt: null, unhealthy: 0, broken: 0, models: expect.any(Array) });
  });

  it('operators find tenants by a part of a name, with their money', async () => {
    const found = await deployed().operator.get(`${API}/operator/tenants?search=aCm`);
    const { balanceCents } = (await deployed().of('billing').get(`${tenant()}/credit`)).json;
    expect(found.json.data).toMatchObject([{ id: deployed().tenantId, name: 'Acme', balanceCents }]);
    expect((await deployed().operator.get(`${API}/operator/tenants?search=nobody`)).json.data).toEqual([]);
  });

  it('the playground runs a model with a key of its session, which no answer shows', async () => {
    const { operator, database } = deployed();
    const { id } = (await operator.post(`${API}/operator/tenants`, { name: 'Playing' })).json as { id: string };
    const credit = { kind: 'topup', amountCents: 1_000, reason: 'to play', ref: 'play-1' };
    await operator.post(`${API}/operator/tenants/${id}/credit`, credit);
    const path = `${API}/tenants/${id}/playground`;
    const trial = { model: 'sim-small', prompt: 'Hello', maxTokens: 20 };
    // Admission hears of the credit a moment later.
    const first = await eventually(
      async () => {
        const answer = await operator.post(path, trial);
        expect(answer.json).toMatchObject({ status: 200, requestId: expect.stringMatching(/^req_/) });
        return answer;
      },
      { everyMs: 200 },
    );
    expect(first.json.answer.choices[0].message.content).not.toBe('');
    await operator.post(path, { ...trial, model: 'sim-large' });
    const made = await database.query<{ owner: string | null }>(
      `SELECT owner FROM auth.credential WHERE tenant_id = $1 AND name = 'Playground' AND expires_at > now()`,
      [id],
    );
    expect(made).toEqual([{ owner: null }]);
    // A tenant learns no operator's address, also not by the keys that the operator makes.
    for (const page of ['keys', 'audit'])
      expect((await operator.get(`${API}/tenants/${id}/${page}`)).text).not.toContain('operator@example.com');
    expect(first.text).not.toMatch(/sk-svc-|Bearer/);
    for (const wrong of [
      { ...trial, maxTokens: 0 },
      { ...trial, prompt: '' },
      { ...trial, key: 'mine' },
    ])
      expect((await operator.post(path, wrong)).status).toBe(400);
  });

  it('a key is listed with what it spent of its budget, for those who may see budgets', async () => {
    const { of, operator } = deployed();
    const { id } = (await operator.post(`${API}/operator/tenants`, { name: 'Budgeted' })).json as { id: string };
    const keys = `${API}/tenants/${id}/keys`;
    const made = await operator.post(keys, { name: 'budgeted' });
    await operator.send('PUT', `${keys}/${made.json.id}/budget`, { budgetCents: 40 });
    expect((await operator.get(keys)).json.data).toMatchObject([
      { budget: { budgetCents: 40, spentNanos: '0', heldNanos: '0' } },
    ]);
    await of('owner').post(`${tenant()}/keys`, { name: 'seen by all' });
    const { data } = (await of('viewer').get(`${tenant()}/keys`)).json as { data: { budget: unknown }[] };
    expect(data.map(({ budget }) => budget)).toEqual(data.map(() => null));
  });
}
