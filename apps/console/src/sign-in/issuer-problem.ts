import { discoveryUrlOf } from './issuer-answers';

/** The longest wait for the answer. */
const LIMIT_MS = 3_000;

/**
 * Why the discovery document of an issuer cannot be read, for the log: the library tells only that it could not.
 * Undefined: it can be read.
 */
export async function problemOfIssuer(issuer: string): Promise<string | undefined> {
  try {
    const answer = await fetch(discoveryUrlOf(issuer), { signal: AbortSignal.timeout(LIMIT_MS) });
    const text = await answer.text();
    if (!answer.ok) return `its discovery document is answered with ${answer.status}`;
    JSON.parse(text);
    return undefined;
  } catch (error) {
    // `fetch` itself says only that it failed. For several addresses of a host, the cause has only a code.
    const { message, code } = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
    return message || code;
  }
}
