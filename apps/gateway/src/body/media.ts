import { isIP } from 'node:net';
import { InferenceError } from '../inference-errors';

/** Suffixes of names that only a local resolver knows, or that mean the machine itself. */
const LOCAL_SUFFIXES = [
  '.arpa',
  '.cluster',
  '.consul',
  '.corp',
  '.default',
  '.home',
  '.internal',
  '.intranet',
  '.invalid',
  '.lan',
  '.local',
  '.localdomain',
  '.localhost',
  '.onion',
  '.private',
  '.svc',
  '.test',
];
const HOST = /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*$/;

/**
 * The URL for the backend. A `data:` URL stays as it is. An `https:` URL is rebuilt from its parts, if the model's
 * backends may fetch from its domain. Throws InferenceError invalid_value. Only the backend resolves the name, so the
 * backend must check the resolved address.
 * @param allowed true: any public domain; a list: these domains and their subdomains; false: none
 */
export function mediaUrl(url: string, allowed: boolean | readonly string[], modelId: string, param: string): string {
  if (url.startsWith('data:')) return url;
  const refuse = (why: string): never => {
    const message = `'${param}' ${why}. Send the content itself as a "data:" URL.`;
    throw new InferenceError('invalid_value', { message, param });
  };
  if (allowed === false) return refuse(`must be a "data:" URL: the model '${modelId}' may not fetch URLs`);
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed?.protocol !== 'https:') return refuse('must be an "https:" or a "data:" URL');
  if (parsed.username !== '' || parsed.password !== '' || parsed.port !== '')
    return refuse('must have neither a user nor a port');
  const host = parsed.hostname.replace(/\.$/, '');
  if (isIP(host.replace(/^\[|\]$/g, '')) !== 0 || !HOST.test(host) || LOCAL_SUFFIXES.some((one) => host.endsWith(one)))
    return refuse('must name a public domain, not an address or a local name');
  if (allowed !== true && !allowed.some((domain) => host === domain || host.endsWith(`.${domain}`)))
    return refuse(`is not on a domain that the model '${modelId}' may fetch from`);
  parsed.hostname = host;
  parsed.hash = '';
  return parsed.href;
}
