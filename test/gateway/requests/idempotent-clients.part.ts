import { eventually } from '@tollgate/testing';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import OpenAI from 'openai';
import { ANSWER, HELLO, type KeyedRequests, WORDS } from './keyed-requests';

/** The header as clients send it, in all its forms. */
export function idempotentClientsTests(keyed: KeyedRequests): void {
  const { gateway, play, newKey, ask, charges } = keyed;

  it.each([
    ['empty', '', 400],
    ['of 256 characters', 'k'.repeat(256), 400],
    ['with other characters than ASCII', 'ké', 400],
    ['of 255 characters', 'k'.repeat(255), 200],
  ])('is checked: %s', async (_, key, status) => {
    play(ANSWER);
    const response = await ask(await gateway.caller(), key);
    expect(response.status).toBe(status);
    if (status === 400) expect(JSON.parse(response.text)).toMatchObject({ error: { param: 'Idempotency-Key' } });
  });

  it('is refused when there are several', async () => {
    const { key } = await gateway.caller();
    const sent = request(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': ['a', 'b'] },
    });
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
    sent.end(JSON.stringify(HELLO));
    const [response] = await answered;
    expect(JSON.parse(await text(response))).toMatchObject({ error: { param: 'Idempotency-Key' } });
    expect(response.statusCode).toBe(400);
  });

  it('is ignored where the plan or the profile says so, unless the profile says otherwise', async () => {
    play(ANSWER);
    const ignored = await gateway.caller({ profile: 'silent' });
    const key = newKey();
    for (let i = 1; i <= 2; i++) {
      const response = await ask(ignored, key);
      expect([response.status, response.headers.get('idempotent-replayed'), keyed.calls]).toEqual([200, null, i]);
    }
    await charges(ignored, 2);
    for (const [profile, replayed] of [
      ['default', null],
      ['loud', 'true'],
    ] as const) {
      const caller = await gateway.caller();
      await gateway.credentials.put([{ ...caller.record, plan: 'silent', profile, version: 2 }]);
      const once = newKey();
      await eventually(async () => {
        await ask(caller, once);
        expect((await ask(caller, once)).headers.get('idempotent-replayed')).toBe(replayed);
      });
    }
  });

  it('costs nothing when the official client repeats it by itself after a broken connection', async () => {
    const caller = await gateway.caller();
    let cut = 1;
    // The answer is settled, but the first connection breaks before the client has it.
    const breaking = async (url: string | URL | Request, init?: RequestInit) => {
      const response = await fetch(url, init);
      if (cut-- <= 0) return response;
      await response.arrayBuffer();
      throw new TypeError('the connection broke');
    };
    const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: caller.key, maxRetries: 2, fetch: breaking });
    for (const stream of [false, true]) {
      play(stream ? WORDS : ANSWER);
      cut = 1;
      const asked = openai.chat.completions.create(
        { model: 'mine', messages: [{ role: 'user', content: 'Hello' }], stream },
        { headers: { 'Idempotency-Key': newKey() } },
      );
      let text = '';
      const answer = await asked;
      if (Symbol.asyncIterator in answer)
        for await (const chunk of answer) text += chunk.choices[0]?.delta.content ?? '';
      else text = answer.choices[0]!.message.content!;
      expect(text).toBe(stream ? 'One stream.' : 'One backend call.');
      expect(keyed.calls).toBe(1);
    }
    await charges(caller, 2);
  });

  it('waits by itself in the official client while the first one runs, and gets its answer', async () => {
    let answer = () => {};
    play((response, body) => (answer = () => ANSWER(response, body)));
    const caller = await gateway.caller();
    let refusals = 0;
    const watched = async (url: string | URL | Request, init?: RequestInit) => {
      const response = await fetch(url, init);
      if (response.status === 409 && ++refusals === 1) answer();
      return response;
    };
    const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: caller.key, maxRetries: 5, fetch: watched });
    const options = { headers: { 'Idempotency-Key': newKey() } };
    const create = () =>
      openai.chat.completions.create({ model: 'mine', messages: [{ role: 'user', content: 'Hello' }] }, options);
    const first = create();
    await eventually(() => expect(keyed.calls).toBe(1));
    const second = await create();
    expect(second).toEqual(await first);
    expect([keyed.calls, refusals > 0]).toEqual([1, true]);
    await charges(caller, 1);
  });
}
