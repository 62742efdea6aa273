import { UnavailableError } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { connected } from '../../e2e/fixtures';
import { answers, type Play, streams, usage } from '../backends/played-backend';
import { idempotentClientsTests } from './idempotent-clients.part';
import { ANSWER, choice, HELLO, MAX_ANSWER_BYTES, SECRET, useKeyedRequests, WORDS } from './keyed-requests';

const keyed = useKeyedRequests();
const { gateway, play, newKey, ask, charges } = keyed;
const originalOf = ({ headers }: { headers: Headers }) => headers.get('x-tollgate-original-request-id');

describe('a request with an Idempotency-Key', () => {
  it('gets the first answer again, without a backend call, a hold or a charge', async () => {
    play(ANSWER);
    const caller = await gateway.caller();
    const key = newKey();
    const first = await ask(caller, key);
    expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([200, 'false']);
    const settled = await gateway.snapshot(caller.tenantId);
    for (let i = 0; i < 3; i++) {
      const repeat = await ask(caller, key);
      expect([repeat.status, repeat.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
      expect(repeat.text).toBe(first.text);
      expect(repeat.headers.get('content-type')).toBe('application/json');
      expect(repeat.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
      expect(originalOf(repeat)).toBe(first.headers.get('x-tollgate-request-id'));
    }
    expect(keyed.calls).toBe(1);
    const after = await gateway.snapshot(caller.tenantId);
    expect([after.settledNanos, after.settledHolds]).toEqual([settled.settledNanos, 1]);
    await charges(caller, 1);
  });

  it('gets a stream again as a stream, byte for byte', async () => {
    play(WORDS);
    const caller = await gateway.caller();
    const key = newKey();
    const first = await ask(caller, key, { ...HELLO, stream: true });
    expect(first.text).toMatch(/One.*stream.*"usage".*\[DONE\]\n\n$/s);
    const repeat = await ask(caller, key, { ...HELLO, stream: true });
    expect(repeat.text).toBe(first.text);
    expect(repeat.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(repeat.headers.get('idempotent-replayed')).toBe('true');
    expect([originalOf(first), originalOf(repeat)]).toEqual([null, first.headers.get('x-tollgate-request-id')]);
    expect(keyed.calls).toBe(1);
    await charges(caller, 1);
  });

  it('runs once of 100 at the same time; the others get 409, or its answer', async () => {
    let answer = () => {};
    play((response, body) => (answer = () => ANSWER(response, body)));
    const caller = await gateway.caller();
    const key = newKey();
    const all = Promise.all(Array.from({ length: 100 }, () => ask(caller, key)));
    await eventually(() => expect(keyed.calls).toBe(1));
    const waiting = await ask(caller, key);
    expect([waiting.status, waiting.code]).toEqual([409, 'idempotency_in_progress']);
    expect(Number(waiting.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect((await ask(caller, key, { ...HELLO, max_tokens: 9 })).code).toBe('idempotency_mismatch');
    answer();
    const done = await all;
    const served = done.filter(({ status }) => status === 200);
    expect(new Set(done.map(({ status }) => status))).toEqual(new Set([200, 409]));
    expect(new Set(served.map(({ text }) => text)).size).toBe(1);
    expect(served.filter(({ headers }) => headers.get('idempotent-replayed') === 'false')).toHaveLength(1);
    expect((await ask(caller, key)).text).toBe(served[0]!.text);
    expect(keyed.calls).toBe(1);
    await charges(caller, 1);
  });

  it('is refused with another body or on another path, and takes nothing from the first', async () => {
    play(ANSWER);
    const caller = await gateway.caller();
    const key = newKey();
    const first = await ask(caller, key);
    const other = await ask(caller, key, { ...HELLO, temperature: 0 });
    expect([other.status, other.code]).toEqual([422, 'idempotency_mismatch']);
    const path = await ask(caller, key, HELLO, '/v1/completions');
    expect([path.status, path.code]).toEqual([422, 'idempotency_mismatch']);
    expect((await ask(caller, key, HELLO, '/chat/completions')).text).toBe(first.text);
    expect(keyed.calls).toBe(1);
  });

  it('reads the kept answer only for the same body, and says so if it was dropped meanwhile', async () => {
    play(ANSWER);
    const caller = await gateway.caller();
    const key = newKey();
    const first = await ask(caller, key);
    const answer = jest.spyOn(gateway.admission, 'answers');
    expect((await ask(caller, key, { ...HELLO, temperature: 0 })).code).toBe('idempotency_mismatch');
    expect(answer).not.toHaveBeenCalled();
    expect((await ask(caller, key)).text).toBe(first.text);
    expect(answer).toHaveBeenCalledTimes(1);
    answer.mockResolvedValueOnce([null]);
    expect((await ask(caller, key)).code).toBe('idempotency_answer_not_stored');
    // A call is repeated once.
    for (let i = 0; i < 2; i++) answer.mockRejectedValueOnce(new UnavailableError('the store does not answer'));
    expect((await ask(caller, key)).status).toBe(503);
    answer.mockRestore();
    expect((await ask(caller, key)).text).toBe(first.text);
    expect(keyed.calls).toBe(1);
    await charges(caller, 1);
  });

  it("is independent of another key's request with the same header", async () => {
    play(ANSWER);
    const [one, two] = [await gateway.caller(), await gateway.caller()];
    const key = newKey();
    await ask(one, key);
    const foreign = await ask(two, key);
    expect([foreign.status, foreign.headers.get('idempotent-replayed')]).toEqual([200, 'false']);
    expect((await ask(two, key, { ...HELLO, n: 1 })).code).toBe('idempotency_mismatch');
    expect(keyed.calls).toBe(2);
  });

  it('may run again after it was refused, or failed before anything was delivered', async () => {
    const busy: Play = (response) => response.writeHead(400).end('{}');
    play(busy, ANSWER);
    const caller = await gateway.caller({ nanos: 0n });
    const key = newKey();
    expect((await ask(caller, key)).code).toBe('credit_exhausted');
    await gateway.admission.applyBalanceUpdates([
      { tenantId: caller.tenantId, version: 2n, balanceNanos: 10n ** 12n, releases: [], suspended: false },
    ]);
    expect((await ask(caller, key, { ...HELLO, temperature: 9 })).status).toBe(400);
    const failed = await ask(caller, key);
    expect([failed.status, keyed.calls]).toEqual([400, 1]);
    const served = await ask(caller, key);
    expect([served.status, served.headers.get('idempotent-replayed'), keyed.calls]).toEqual([200, 'false', 2]);
    await charges(caller, 1);
  });

  it('gets its answer even when credit is used up, the model is gone, and the body is large', async () => {
    play(ANSWER);
    const caller = await gateway.caller();
    const body = { ...HELLO, messages: [{ role: 'user', content: 'Hello. '.repeat(3_000) }] };
    const key = newKey();
    const first = await ask(caller, key, body);
    expect(first.status).toBe(200);
    await gateway.credentials.put([{ ...caller.record, profile: 'one-model', version: 2 }]);
    await eventually(async () => expect((await ask(caller, newKey(), body)).code).toBe('model_not_found'));
    expect((await ask(caller, key, body)).text).toBe(first.text);
    await gateway.admission.applyBalanceUpdates([
      { tenantId: caller.tenantId, version: 2n, balanceNanos: 0n, releases: [], suspended: false },
    ]);
    expect((await ask(caller, newKey(), body)).code).toBe('credit_exhausted');
    expect((await ask(caller, key, body)).text).toBe(first.text);
    expect(keyed.calls).toBe(1);
  });

  it('repeats what a client got that left its stream, and says that it is not all', async () => {
    play(streams([{ delta: { content: 'Half of ' } }], null, true));
    const caller = await gateway.caller();
    const key = newKey();
    const body = { ...HELLO, stream: true };
    const leaving = new AbortController();
    const response = await gateway.post('/v1/chat/completions', body, caller, {
      headers: { 'idempotency-key': key },
      signal: leaving.signal,
    });
    const { value } = (await response.body!.getReader().read()) as { value: Uint8Array };
    expect(Buffer.from(value).toString()).toContain('Half of ');
    leaving.abort();
    const [event] = await charges(caller, 1);
    expect(event).toMatchObject({ outcome: 'client_closed' });
    const repeat = await ask(caller, key, body);
    expect([repeat.status, repeat.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
    expect(repeat.text).toMatch(/Half of .*"code":"idempotency_answer_incomplete"\}\}\n\ndata: \[DONE\]\n\n$/s);
    expect(keyed.calls).toBe(1);
    await charges(caller, 1);
  });

  it('repeats the error at the end of a stream that its backend broke off', async () => {
    const broken: Play = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const chunk = { choices: [{ index: 0, delta: { content: 'Half' } }] };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`, () => response.destroy());
    };
    play(broken);
    const caller = await gateway.caller();
    const key = newKey();
    const first = await ask(caller, key, { ...HELLO, stream: true });
    expect(first.text).toMatch(/Half.*"error".*\[DONE\]\n\n$/s);
    const before = keyed.calls;
    expect((await ask(caller, key, { ...HELLO, stream: true })).text).toBe(first.text);
    expect(keyed.calls).toBe(before);
    await charges(caller, 1);
  });

  it('never runs again when its answer was too large to be kept, and says so', async () => {
    play(answers({ ...choice('x'.repeat(MAX_ANSWER_BYTES)), ...usage(8, 2_500) }));
    const caller = await gateway.caller();
    const key = newKey();
    expect((await ask(caller, key)).status).toBe(200);
    const repeat = await ask(caller, key);
    expect([repeat.status, repeat.code]).toEqual([422, 'idempotency_answer_not_stored']);
    expect(repeat.headers.get('retry-after')).toBeNull();
    expect(keyed.calls).toBe(1);
    await charges(caller, 1);
  });

  it('leaves no plain text of key, body or answer in the store, and cannot be read with another context', async () => {
    const secretWords = 'the-answer-is-confidential';
    play(answers({ ...choice(secretWords), ...usage(8, 4) }));
    const caller = await gateway.caller();
    const key = newKey();
    await ask(caller, key, { ...HELLO, messages: [{ role: 'user', content: 'my-private-question' }] });
    const rows = await connected({ connectionString: gateway.database.url }, async (client) => {
      const { rows } = await client.query<{ row: string }>(
        'SELECT row_to_json(c)::text AS row FROM admission.claim c WHERE tenant_id = $1',
        [caller.tenantId],
      );
      return rows;
    });
    expect(rows).toHaveLength(1);
    expect(rows[0]!.row).toMatch(/"settled":true,"answer":"[\w-]{8}\.[\w-]{100,}"/);
    for (const plain of [key, secretWords, 'my-private-question', SECRET]) {
      expect(rows[0]!.row).not.toContain(plain);
      expect(rows[0]!.row).not.toContain(Buffer.from(plain).toString('base64url').slice(0, -2));
    }
  });

  it('asks the store for nothing when there is no key', async () => {
    play(ANSWER);
    const caller = await gateway.caller();
    const recall = jest.spyOn(gateway.admission, 'recall');
    const first = await ask(caller, null);
    expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([200, null]);
    expect(recall).not.toHaveBeenCalled();
    recall.mockRestore();
  });

  idempotentClientsTests(keyed);
});
