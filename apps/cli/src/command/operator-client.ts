import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileProblem } from '@tollgate/runtime/file-problem';
import { Failure, UsageFailure } from './failure';
import { inOptions } from './field-options';
import { printable } from './table';

const REQUEST_TIMEOUT_MS = 15_000;
/** For all of an export. */
const DOWNLOAD_TIMEOUT_MS = 600_000;
/** The largest number of rows in a list, over all its pages. */
export const MAX_LIST_ROWS = 10_000;
const PAGE_ROWS = 200;
/** Enough to tell an answer with rows from one that has only its first line. */
const MAX_COUNTED_LINES = 2;
const LINE_FEED = 10;
const WRONG_REQUEST = 400;
const PREFIX = '/_operator/v1';
/** The server's message for an unknown tenant, which does not say how to find the right one. */
export const NO_TENANT = 'No such tenant.';
/** The same for a key. */
export const NO_KEY = 'No such key.';
/** The same for an operator token. */
export const NO_OPERATOR_TOKEN = 'No such operator token.';

export interface Operator {
  url: string;
  secret: string;
}

const HOW_TO_FIND =
  'Start it with "npm start" and run this in the same folder, or set TOLLGATE_DATA_DIR to its data directory, or ' +
  'TOLLGATE_OPERATOR_URL and TOLLGATE_OPERATOR_SECRET.';

/**
 * Finds the operator API: TOLLGATE_OPERATOR_URL with TOLLGATE_OPERATOR_SECRET, or the `operator.json` that a standalone
 * wrote into its data directory (TOLLGATE_DATA_DIR, `.tollgate`). Throws UsageFailure if only one of the two is set or
 * the URL is invalid, and Failure if nothing is found.
 */
export function findOperator(env: NodeJS.ProcessEnv): Operator {
  const { TOLLGATE_OPERATOR_URL: url, TOLLGATE_OPERATOR_SECRET: secret } = env;
  if (url) {
    if (!secret) throw new UsageFailure('TOLLGATE_OPERATOR_URL is set, but TOLLGATE_OPERATOR_SECRET is not: set both.');
    return { url: baseUrl(url, 'TOLLGATE_OPERATOR_URL'), secret: headerText(secret) };
  }
  const file = join(resolve(env['TOLLGATE_DATA_DIR'] || '.tollgate'), 'operator.json');
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT')
      throw new Failure(`No Tollgate was found: there is no ${file}. ${HOW_TO_FIND}`, 'not_running');
    throw new Failure(
      `${file} cannot be read: ${fileProblem(error)}. Run this as the user who runs Tollgate.`,
      'not_running',
    );
  }
  const found = parseOperatorFile(text);
  if (!found) throw new Failure(`${file} is not valid. Restart Tollgate: it writes the file again.`, 'not_running');
  return { url: baseUrl(found.url, file), secret: headerText(secret || found.secret) };
}

/** Refuses here what no header can carry: the error of `fetch` would show the secret. Throws UsageFailure. */
function headerText(secret: string): string {
  if (/^[\x21-\x7e]+$/.test(secret)) return secret;
  throw new UsageFailure(
    'The operator secret has a character that no secret has, such as a space or a line break. Correct ' +
      'TOLLGATE_OPERATOR_SECRET.',
  );
}

export const tenantPath = (tenant: string, rest = ''): string => `/tenants/${encodeURIComponent(tenant)}${rest}`;

/** The client of the operator API. It returns parsed JSON. A refusal is a Failure with the API's code and message. */
export class OperatorClient {
  constructor(private readonly operator: Operator) {}

  get<T>(path: string): Promise<T> {
    return this.call<T>('GET', path);
  }

  post<T>(path: string, body: object = {}, timeoutMs?: number): Promise<T> {
    return this.call<T>('POST', path, body, timeoutMs);
  }

  put<T>(path: string, body: object): Promise<T> {
    return this.call<T>('PUT', path, body);
  }

  patch<T>(path: string, body: object): Promise<T> {
    return this.call<T>('PATCH', path, body);
  }

  async delete(path: string): Promise<void> {
    await this.call('DELETE', path);
  }

  /** All rows of a list, newest first, page by page; at most MAX_LIST_ROWS. */
  async list<T>(path: string): Promise<{ rows: T[]; truncated: boolean }> {
    const rows: T[] = [];
    let after: string | null = null;
    do {
      const from: string = after === null ? '' : `&after=${encodeURIComponent(after)}`;
      const query = `${path.includes('?') ? '&' : '?'}limit=${PAGE_ROWS}${from}`;
      const page: { data: T[]; nextCursor: string | null } = await this.get(`${path}${query}`);
      rows.push(...page.data);
      after = page.nextCursor;
    } while (after !== null && rows.length < MAX_LIST_ROWS);
    return { rows, truncated: after !== null };
  }

  /**
   * Writes the body of an answer to `out` as it comes, and leaves `out` open. Returns its lines, counted up to
   * MAX_COUNTED_LINES. Null if `out` fails, as a pipe does whose reader leaves: who made `out` handles its error.
   */
  async download(path: string, out: NodeJS.WritableStream, timeoutMs = DOWNLOAD_TIMEOUT_MS): Promise<number | null> {
    const response = await this.send('GET', path, undefined, timeoutMs);
    if (!response.ok) throw refusal(response.status, parseJson(await response.text()), this.operator.url, path);
    let lines = 0;
    const counted = async function* (chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        for (let at = -1; lines < MAX_COUNTED_LINES && (at = chunk.indexOf(LINE_FEED, at + 1)) >= 0;) lines++;
        yield chunk;
      }
    };
    let errorOfOut: unknown;
    out.once('error', (error: Error) => (errorOfOut = error));
    try {
      await pipeline(Readable.fromWeb(response.body as never), counted, out, { end: false });
      return lines;
    } catch (error) {
      if (error === errorOfOut) return null;
      throw new Failure(`The answer of ${this.operator.url} broke off (${reasonOf(error)}).`, 'unreachable');
    }
  }

  private async call<T>(method: string, path: string, body?: object, timeoutMs = REQUEST_TIMEOUT_MS): Promise<T> {
    const { url } = this.operator;
    const response = await this.send(method, path, body, timeoutMs);
    const text = await response.text().catch((error: unknown) => {
      throw this.unreachable(error);
    });
    if (response.status === 204) return undefined as T;
    const answer = parseJson(text);
    if (response.ok && answer !== null) return answer as T;
    throw refusal(response.status, answer, url, path);
  }

  private async send(method: string, path: string, body: object | undefined, timeoutMs: number): Promise<Response> {
    const { url, secret } = this.operator;
    // URLs resolve these parts, and encodeURIComponent keeps them: an id `..` would name what contains the resource.
    const dots = /\/(\.\.?)(?=[/?]|$)/.exec(path)?.[1];
    if (dots !== undefined) throw new UsageFailure(`'${dots}' is not an id.`);
    try {
      return await fetch(`${url}${PREFIX}${path}`, {
        method,
        headers: { authorization: `Bearer ${secret}`, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      });
    } catch (error) {
      throw this.unreachable(error);
    }
  }

  private unreachable(error: unknown): Failure {
    return new Failure(
      `Tollgate does not answer at ${this.operator.url} (${reasonOf(error)}). Is it running? ${HOW_TO_FIND}`,
      'unreachable',
    );
  }
}

function refusal(status: number, answer: unknown, url: string, path: string): Failure {
  const error = (answer as { error?: { code?: unknown; message?: unknown } } | null)?.error;
  if (typeof error?.code !== 'string') {
    return new Failure(`The server at ${url} is not Tollgate's operator API (HTTP ${status}).`, 'unreachable');
  }
  if (error.code === 'route_not_found') {
    return new Failure(
      `${url} is the public port of Tollgate. Set TOLLGATE_OPERATOR_URL to the operator port, 8081 by default.`,
      error.code,
    );
  }
  if (error.code === 'invalid_secret') {
    return new Failure(
      `The operator secret or token for ${url} was refused. Check TOLLGATE_OPERATOR_SECRET, or that the data ` +
        'directory belongs to this server.',
      error.code,
    );
  }
  const tenant = /^\/tenants\/([^/?]+)/.exec(path)?.[1];
  if (error.code === 'not_found' && error.message === NO_TENANT && tenant !== undefined) {
    const id = printable(decodeURIComponent(tenant));
    return new Failure(`No tenant has the id '${id}'. See: tollgate tenant list`, error.code);
  }
  const key = /^\/tenants\/([^/?]+)\/keys\/([^/?]+)/.exec(path);
  if (error.code === 'not_found' && error.message === NO_KEY && key) {
    const [of, id] = key.slice(1).map((text) => printable(decodeURIComponent(text)));
    return new Failure(`Tenant ${of} has no key with the id '${id}'. See: tollgate key list ${of}`, error.code);
  }
  const operatorToken = /^\/operator-tokens\/([^/?]+)/.exec(path)?.[1];
  if (error.code === 'not_found' && error.message === NO_OPERATOR_TOKEN && operatorToken !== undefined) {
    const id = printable(decodeURIComponent(operatorToken));
    return new Failure(`No operator token has the id '${id}'. See: tollgate operator token list`, error.code);
  }
  // The command line determines only the request.
  return new Failure(inOptions(String(error.message)), error.code, status === WRONG_REQUEST);
}

function baseUrl(text: string, from: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new UsageFailure(`${from} must be an http(s) URL such as http://127.0.0.1:8081.`);
  return text.replace(/\/+$/, '').replace(/\/_operator\/v1$/, '');
}

function parseOperatorFile(text: string): Operator | null {
  const value = parseJson(text) as Partial<Operator> | null;
  return typeof value?.url === 'string' && typeof value.secret === 'string'
    ? { url: value.url, secret: value.secret }
    : null;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function reasonOf(error: unknown): string {
  const { name, message, cause } = error as Error & { cause?: { code?: string; message?: string } };
  if (name === 'TimeoutError') return 'no answer in time';
  return cause?.code ?? cause?.message ?? message;
}
