import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { BrowserSession } from './browser';
import { API } from './people';

const MAX_STEPS = 10;
const MAX_TRIES = 5;

export interface Issuer {
  url: string;
  /** The secret that the client must have from now on. */
  setSecret(secret: string): Promise<void>;
  stop(): Promise<void>;
}

type People = Readonly<Record<string, { email: string; email_verified: boolean; groups?: string[] }>>;

/** A real OpenID Connect provider whose accounts are `people`, by their login. */
export async function startIssuer(people: People, secret: string): Promise<Issuer> {
  const child = fork(join(__dirname, 'oidc-issuer.mjs'), [JSON.stringify(people), secret], {
    stdio: 'ignore',
    execArgv: [],
  });
  const [{ issuer }] = (await once(child, 'message')) as [{ issuer: string }];
  return {
    url: issuer,
    async setSecret(next) {
      child.send({ secret: next });
      await once(child, 'message');
    },
    async stop() {
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

/**
 * What a browser does when a person chooses single sign-on: it follows the console to the provider and back. Returns
 * the page of the console where it ends. `start`: the call that leads to the provider. It begins again if the console
 * was too busy at the end.
 */
export async function signInAtIssuer(
  console_: BrowserSession,
  login: string,
  start: 'sign-in/social' | 'link-social' = 'sign-in/social',
): Promise<URL> {
  for (let tries = 1; ; tries++) {
    const page = await wayOverIssuer(console_, login, start);
    if (page.searchParams.get('error') !== 'unavailable' || tries === MAX_TRIES) return page;
  }
}

async function wayOverIssuer(
  console_: BrowserSession,
  login: string,
  start: 'sign-in/social' | 'link-social',
): Promise<URL> {
  const begun = await console_.post(`${API}/auth/${start}`, { provider: 'oidc', callbackURL: 'https://evil.example/' });
  if (begun.status !== 200) throw new Error(`no way to the provider: ${begun.text}`);
  let url = new URL((begun.json as { url: string }).url);
  const provider = new BrowserSession(url.origin);
  for (let step = 0; step < MAX_STEPS; step++) {
    const isForm = url.pathname.startsWith('/interaction/');
    const answer = isForm
      ? await provider.send('POST', url.pathname, `prompt=login&login=${login}&password=any`, {
          'content-type': 'application/x-www-form-urlencoded',
        })
      : await provider.get(url.pathname + url.search);
    const location = answer.headers.get('location');
    if (location === null) throw new Error(`the provider answered ${answer.status}: ${answer.text.slice(0, 500)}`);
    url = new URL(location, url);
    if (url.origin !== provider.base) return backAt(console_, url);
  }
  throw new Error('the provider did not lead back to the console');
}

async function backAt(console_: BrowserSession, url: URL): Promise<URL> {
  const answer = await console_.get(url.pathname + url.search);
  if (answer.status !== 302) throw new Error(`the callback answered ${answer.status}: ${answer.text}`);
  return new URL(answer.headers.get('location')!);
}
