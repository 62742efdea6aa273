import { Optional, Satisfies, Setting, WholeNumber } from '../settings/decorators';

/** Where traces go, and which are kept. */
export class TracingSettings {
  @Setting('Receiver of traces by OTLP over HTTP, such as `http://collector:4318/v1/traces`. Unset: no traces.')
  @Optional()
  @Satisfies(isTracesUrl, 'an http or https URL without a user')
  TOLLGATE_TRACES_URL?: string;
  @Setting('Percent of the traces that are kept. Requests that fail by our fault or are slow are always kept.')
  @WholeNumber(0, 100)
  TOLLGATE_TRACES_PERCENT: number = 1;
  @Setting('Milliseconds after which a request counts as slow.')
  @WholeNumber(1, 3_600_000)
  TOLLGATE_TRACES_SLOW_MS: number = 30_000;
}

function isTracesUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  return ['http:', 'https:'].includes(protocol) && username === '' && password === '';
}
