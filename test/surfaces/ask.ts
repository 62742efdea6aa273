import { OPERATOR_SECRET, type Services } from './services';

export interface Asked {
  method?: string;
  /** null sends no Authorization header. */
  token?: string | null;
  /** The complete Authorization header. */
  authorization?: string;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent unchanged. */
  text?: string | Buffer;
  headers?: Record<string, string>;
}

export interface Answer {
  status: number;
  headers: Headers;
  /** Any form, because tests inspect it. */
  json: ReturnType<typeof JSON.parse>;
  text: string;
}

/** Sends a request by fetch, GET unless it has a body. Returns the parsed body, or null if it is not JSON. */
export async function send(
  url: string,
  { method, token, authorization, body, text, headers = {} }: Asked,
): Promise<Answer> {
  const sent = text ?? (body === undefined ? undefined : JSON.stringify(body));
  const credential = authorization ?? (token == null ? undefined : `Bearer ${token}`);
  const response = await fetch(url, {
    method: method ?? (sent === undefined ? 'GET' : 'POST'),
    headers: {
      ...(credential !== undefined && { authorization: credential }),
      ...(sent !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(sent !== undefined && { body: sent }),
  });
  const answer = await response.text();
  const isJson = (response.headers.get('content-type') ?? 'application/json').startsWith('application/json');
  const json = answer === '' || !isJson ? null : JSON.parse(answer);
  return { status: response.status, headers: response.headers, json, text: answer };
}

/** Sends a request to the operator API, with the operator secret by default. */
export const askOperator =
  (services: Services) =>
  (path: string, asked: Asked = {}): Promise<Answer> =>
    send(`${services.operatorUrl}/_operator/v1${path}`, { token: OPERATOR_SECRET, ...asked });

/** Sends a request to the management API, with `token` by default. */
export function managementApi(services: Services, tokenOf: () => string) {
  const ask = (path: string, asked: Asked = {}) =>
    send(`${services.publicUrl}/_api/v1${path}`, { token: tokenOf(), ...asked });
  const expectRefusal = async (path: string, asked: Asked, status: number, code: string): Promise<Answer> => {
    const answer = await ask(path, asked);
    expect(answer.json).toEqual({ error: { code, message: expect.any(String) } });
    expect(answer.status).toBe(status);
    expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
    return answer;
  };
  return { ask, expectRefusal };
}

export const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
