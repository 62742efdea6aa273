import { MustBe } from './config-rules';

/** Lower case, with a dot, and without a number at its end: neither an IP address nor a single-label name. */
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/;

/** `true`, `false`, or a list of domains. Each includes its subdomains. */
export const IsMediaUrls = (): PropertyDecorator =>
  MustBe('true, false, or a list of domains such as images.example.com', isMediaUrls);

function isMediaUrls(value: unknown): boolean {
  if (typeof value === 'boolean') return true;
  return Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string' && DOMAIN.test(one));
}
