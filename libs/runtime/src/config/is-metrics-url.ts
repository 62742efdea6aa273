import { MustBe } from './config-rules';

/** An absolute http(s) URL without user and fragment. */
export const IsMetricsUrl = (): PropertyDecorator =>
  MustBe('an http(s) URL such as http://127.0.0.1:8000/metrics, with a port from 1 to 65535', isMetricsUrl);

function isMetricsUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !/^https?:\/\/[^\s#@\\]+$/.test(value) || !URL.canParse(value)) return false;
  const { hostname, port } = new URL(value);
  return hostname !== '' && port !== '0';
}
