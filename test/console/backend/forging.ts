import type { TestDatabase } from '@tollgate/testing';
import { BrowserSession, type Reply } from '../running/browser';
import { API } from '../running/people';

/** Undefined: the request does not say which page it comes from. */
const ELSEWHERE = ['https://evil.example', undefined];

/** A write that was sent from elsewhere. `path`: without the prefix, with its real ids. */
export interface Forged {
  method: string;
  path: string;
  answer: Reply;
}

/** The browser of a person that sends each write as pages of other sites would, before it sends it as the console. */
export class ForgingSession extends BrowserSession {
  constructor(
    person: BrowserSession,
    private readonly database: Pick<TestDatabase, 'query'>,
    /** Gets every write that was refused. */
    private readonly forged: Forged[],
  ) {
    super(person.base);
    for (const [name, value] of person.cookies) this.cookies.set(name, value);
  }

  override async send(...request: Parameters<BrowserSession['send']>): Promise<Reply> {
    const [method, url, body] = request;
    if (method !== 'GET') await this.forge(method, url, body);
    return super.send(...request);
  }

  /** Expects that a write from elsewhere is refused, opens no session and changes nothing. */
  async forge(method: string, url: string, body: unknown): Promise<void> {
    const path = url.replace(`${API}/`, '');
    const before = await this.stateOfConsole();
    for (const origin of ELSEWHERE) {
      const answer = await super.send(method, url, body, { origin });
      const { status, json, headers } = answer;
      const seen = [method, path, origin, status, json?.error?.code, headers.getSetCookie()];
      expect(seen).toEqual([method, path, origin, 403, 'wrong_origin', []]);
      this.forged.push({ method, path, answer });
    }
    expect(await this.stateOfConsole()).toEqual(before);
  }

  /** All rows of the console itself: people, sessions, proofs, invitations, and tries of the sign-in library. */
  private async stateOfConsole(): Promise<unknown> {
    // Erasures go on by themselves.
    const tables = await this.database.query<{ name: string }>(
      `SELECT table_name AS name FROM information_schema.tables
       WHERE table_schema = 'console' AND table_name <> 'erasure' ORDER BY table_name`,
    );
    expect(tables.length).toBeGreaterThan(10);
    const rowsOf = ({ name }: { name: string }) =>
      `SELECT '${name}' AS name, json_agg(t ORDER BY t::text)::text AS rows FROM console."${name}" t`;
    return this.database.query(tables.map(rowsOf).join(' UNION ALL '));
  }
}
