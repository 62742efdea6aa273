import { answers, finish, type Play, streams, usage, usePlayedBackend } from '../backends/played-backend';
import { type Caller, type GatewayUnderTest, PLENTY, useGateway } from '../use-gateway';

export const SECRET = 'a-secret-that-the-store-never-sees-0123456789';
export const MAX_ANSWER_BYTES = 20_000;
export const HELLO = { model: 'mine', messages: [{ role: 'user', content: 'Hello' }] };
export const choice = (content: string) => ({
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
});
export const ANSWER = answers({ ...choice('One backend call.'), ...usage(8, 4) });
export const WORDS = streams(
  ['One', ' stream', '.'].map((content) => ({ delta: { content } })),
  finish(usage(8, 3)),
);

interface KeyedAnswer {
  status: number;
  text: string;
  headers: Headers;
  code: string | null;
}

export interface KeyedRequests {
  gateway: GatewayUnderTest;
  /** Calls of the backend since the last `play`. */
  readonly calls: number;
  /** Plays one after the other; the last one stays. */
  play(this: void, ...plays: Play[]): void;
  newKey(this: void): string;
  ask(this: void, caller: Caller, key: string | null, body?: object, path?: string): Promise<KeyedAnswer>;
  /** The tenant's usage events once nothing runs. Their number is that of the charges. */
  charges(this: void, caller: Caller, count: number): ReturnType<GatewayUnderTest['events']>;
}

/** A gateway that keeps answers. In its plan `silent` the header is ignored, except with the profile `loud`. */
export function useKeyedRequests(): KeyedRequests {
  const limits = JSON.stringify(PLENTY);
  const { yaml, state } = usePlayedBackend('mine');
  const gateway = useGateway({
    yaml: () =>
      yaml().replace(
        'plans:',
        `plans:
  - { id: silent, limits: ${limits}, idempotency: false, profiles: [{ id: default, limits: ${limits} },
      { id: loud, limits: ${limits}, idempotency: true }] }`,
      ) + `      - { id: silent, limits: ${limits}, idempotency: false }\n`,
    idempotency: { secrets: [SECRET], maxAnswerBytes: MAX_ANSWER_BYTES },
  });
  let calls = 0;
  let keys = 0;
  return {
    gateway,
    get calls() {
      return calls;
    },
    play(...plays) {
      calls = 0;
      state.play = (response, ask) => plays[Math.min(calls++, plays.length - 1)]!(response, ask);
    },
    newKey: () => `key-${process.pid}-${++keys}`,
    async ask(caller, key, body = HELLO, path = '/v1/chat/completions') {
      const headers = key === null ? {} : { 'idempotency-key': key };
      const response = await gateway.post(path, body, caller, { headers });
      const text = await response.text();
      const code = /"code":"([a-z_]+)"/.exec(text)?.[1] ?? null;
      return { status: response.status, text, headers: response.headers, code };
    },
    charges: ({ tenantId }, count) => gateway.events(tenantId, count),
  };
}
