// An operator of the console, signed in as a browser is: with cookies and its own origin.
import { randomBytes } from 'node:crypto';

const API = '/console/api';

/** @returns {Promise<{ get: (path: string) => Promise<{ ms: number, answer: object, bytes: number }> }>} */
export async function signedInOperator({ operatorUrl, operatorSecret, console: { url } }) {
  const base = new URL(url).origin;
  const cookies = new Map();
  const send = async (method, path, body) => {
    const began = performance.now();
    const answer = await fetch(`${base}${API}${path}`, {
      method,
      headers: {
        cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        origin: base,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    const ms = performance.now() - began;
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    for (const set of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      cookies.set(name, value);
    }
    return { ms, answer: text === '' ? null : JSON.parse(text), bytes: text.length };
  };
  const invited = await fetch(`${operatorUrl}/_operator/v1/operator-invitations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${operatorSecret}`, 'content-type': 'application/json' },
    body: '{}',
  });
  if (!invited.ok) throw new Error(`no invitation: ${invited.status} ${await invited.text()}`);
  const secret = new URL((await invited.json()).data.link).hash.slice(1);
  const [email, password] = [`bench-${Date.now()}@example.com`, randomBytes(16).toString('hex')];
  await send('POST', '/invitation/accept-as-new', { secret, name: 'Bench', email, password });
  await send('POST', '/auth/sign-in/email', { email, password });
  return { get: (path) => send('GET', path) };
}
