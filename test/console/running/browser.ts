import { onceServed } from '@tollgate/testing';
import { Agent, fetch, type Headers, type Response } from 'undici';

/** An answer never takes this long, however slow the machine is. */
const ANSWER_TIMEOUT_MS = 60_000;

/** What a browser does of HTTP: it keeps cookies, and sends its origin with every write. */
export class BrowserSession {
  readonly cookies = new Map<string, string>();

  private readonly dispatcher: Agent;

  /**
   * @param base  where the console is reached: the origin of its pages
   * @param from  a loopback address of its own, because the console counts some tries by address
   */
  constructor(
    readonly base: string,
    from?: string,
  ) {
    this.dispatcher = new Agent(from === undefined ? {} : { localAddress: from, connect: { family: 4 } });
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Reply> {
    return this.send('GET', path, undefined, headers);
  }

  post(path: string, body: unknown = {}, headers: Record<string, string> = {}): Promise<Reply> {
    return this.send('POST', path, body, headers);
  }

  /**
   * Asks again while a busy service makes the answer a 503.
   * @param headers  instead of a browser's headers. Undefined: the request has no such header.
   */
  send(method: string, path: string, body?: unknown, headers: Record<string, string | undefined> = {}): Promise<Reply> {
    return onceServed(() => this.sendOnce(method, path, body, headers));
  }

  /** As `send`, but a 503 is an answer like any other. */
  async sendOnce(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string | undefined> = {},
  ): Promise<Reply> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await fetch(this.base + path, {
      dispatcher: this.dispatcher,
      method,
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
      headers: given({
        ...(cookie !== '' && { cookie }),
        ...(method !== 'GET' && { origin: this.base }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      }),
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    for (const set of answer.headers.getSetCookie()) this.keep(set);
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, text, json: jsonOf(text) };
  }

  /** An answer whose body goes on. */
  stream(path: string, timeoutMs: number): Promise<Response> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const { dispatcher } = this;
    return fetch(this.base + path, { dispatcher, headers: { cookie }, signal: AbortSignal.timeout(timeoutMs) });
  }

  private keep(set: string): void {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
    if (/max-age=0/i.test(set)) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}

export interface Reply {
  status: number;
  headers: Headers;
  text: string;
  json: any; // eslint-disable-line @typescript-eslint/no-explicit-any
}

const given = (headers: Record<string, string | undefined>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined));

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
