import {
  formatCents,
  type ExplainedKey,
  type ExplainedRequest,
  type RefusedRequest,
  type RequestLife,
} from '@tollgate/contracts';
import type { Context } from '../command/context';
import { entryOf, invoiceOf } from './books-words';
import { attempts, endOf, hindrance, refusal } from './explain-words';
import { formatNanos } from '../command/money';
import { printable } from '../command/table';

/** The whole life of a request, from the stores. */
export async function explainRequest({ client, output }: Context, name: string, tenant?: string): Promise<void> {
  const { data } = await client.get<{ data: { requests: ExplainedRequest[]; currency: string } }>(
    `/explain/requests/${encodeURIComponent(name)}${ofTenant(tenant)}`,
  );
  const { requests, currency } = data;
  const several = requests.length > 1 ? [`${requests.length} requests have this id, the newest first.`] : [];
  output.answer(data, [...several, ...requests.map((one) => lifeOf(one, currency))].join('\n\n'));
}

/** What a key may do now. */
export async function explainKey({ client, output }: Context, key: string, tenant?: string): Promise<void> {
  const { data } = await client.get<{ data: ExplainedKey }>(
    `/explain/keys/${encodeURIComponent(key)}${ofTenant(tenant)}`,
  );
  output.answer(data, stateOf(data));
}

const ofTenant = (tenant: string | undefined) =>
  tenant === undefined ? '' : `?tenantId=${encodeURIComponent(tenant)}`;

/** Lines of a heading and a text, in two columns. */
function lines(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([heading]) => heading.length)) + 2;
  return rows.map(([heading, text]) => `${`${heading}:`.padEnd(width)}${text}`).join('\n');
}

function lifeOf(request: ExplainedRequest, currency: string): string {
  const { id, tenantId, callerRequestId, key, served, refused, hold } = request;
  const rows: [string, string][] = [
    ['Request', callerRequestId === null ? id : `${id} (x-request-id ${callerRequestId})`],
  ];
  const keyId = served?.keyId ?? refused?.keyId ?? request.charge?.keyId ?? hold?.running?.keyId;
  const named = key === null ? '' : ` (${printable(key.name)})`;
  if (keyId !== undefined) rows.push(['Key', `${keyId}${named}`]);
  rows.push(['Tenant', key === null ? tenantId : `${tenantId} (${printable(key.tenantName)})`]);
  if (refused && !served) rows.push(...refusedRows(refused, currency));
  if (served) rows.push(...servedRows(request, served, currency));
  else if (request.charge)
    rows.push(
      ['Ended', request.charge.endedAt],
      ['Event', 'no longer kept; what was charged stays'],
      ...booksRows(request, currency),
    );
  else if (hold) rows.push(...runningRows(hold, currency));
  return lines(rows);
}

function refusedRows(refused: RefusedRequest, currency: string): [string, string][] {
  const { at, code, model = 'not known: its body was not read, or names none', param, failed } = refused;
  const rows: [string, string][] = [
    [HOW_ENDED[code] ?? 'Refused', `${at}, ${code}`],
    ['Model', printable(model)],
  ];
  if (param !== undefined) rows.push(['Parameter', printable(param)]);
  rows.push(['Why', refusal(refused, currency)]);
  if (failed) rows.push(['Backends', attempts(failed)]);
  rows.push(['Cost', 'nothing: it has no usage']);
  return rows;
}

/** How requests without usage ended. The others were refused. */
const HOW_ENDED: Readonly<Record<string, string>> = {
  upstream_error: 'Failed',
  overloaded_error: 'Failed',
  timeout_error: 'Failed',
  api_error: 'Failed',
  client_closed: 'Left',
};

function runningRows(hold: NonNullable<ExplainedRequest['hold']>, currency: string): [string, string][] {
  const holds = `it holds ${formatNanos(hold.nanos, currency)}; its gateway reported ${seconds(hold.quietMs)} ago`;
  if (!hold.running) return [['Running', holds]];
  const { startedAt, model, kind, stream, delivered } = hold.running;
  const progress = delivered
    ? `${delivered.promptTokens} prompt tokens, ${delivered.completionTokens} output tokens, ` +
      `${formatNanos(delivered.costNanos, currency)}, as its gateway last reported`
    : 'no output reported yet; an answer that is not streamed reports none before its end';
  return [
    ['Started', `${startedAt}, ${printable(model)}, ${kind}${stream ? ', streamed' : ''}`],
    ['Running', holds],
    ['Progress', progress],
    ['Limits', 'recorded at its end, as are its backend and failed attempts'],
  ];
}

function servedRows(
  request: ExplainedRequest,
  served: NonNullable<ExplainedRequest['served']>,
  currency: string,
): [string, string][] {
  const { life, model, kind, stream, estimated, promptTokens, cachedTokens, completionTokens } = served;
  const cached = cachedTokens > 0 ? ` (${cachedTokens} cached)` : '';
  const counted = estimated ? ', counted by the gateway' : '';
  const overrun = served.overrunNanos === '0' ? '' : `; beyond the hold: ${formatNanos(served.overrunNanos, currency)}`;
  return [
    ['Started', `${served.startedAt}, ${model}, ${kind}${stream ? ', streamed' : ''}`],
    ...(life?.asked ? [['Fallback', `of ${printable(life.asked)}, which was asked for`] as [string, string]] : []),
    ...(life ? lifeRows(life, currency) : [['Life', 'not recorded'] as [string, string]]),
    ['Backend', served.backend ?? 'unknown'],
    ...(life?.failed ? [['Failed', attempts(life.failed)] as [string, string]] : []),
    ['Progress', `${promptTokens} prompt tokens${cached}, ${completionTokens} output tokens${counted}${firstOf(life)}`],
    ['Ended', `${served.endedAt}, ${endOf(served, request.refused)}`],
    ['Settled', `${formatNanos(served.costNanos, currency)} at price ${served.priceVersion}${overrun}`],
    ['Event', `recorded ${served.recordedAt}`],
    ...booksRows(request, currency),
  ];
}

function booksRows(request: ExplainedRequest, currency: string): [string, string][] {
  const { hold, charge } = request;
  const unsettled = hold === null ? 'not gathered yet' : 'on its way; the hold is settled';
  return [
    ['Charge', charge ? `${formatNanos(charge.costNanos, currency)}, billed in ${charge.period}` : unsettled],
    ['Entry', entryOf(request, currency)],
    ['Invoice', invoiceOf(request)],
  ];
}

function lifeRows({ key, tenant, heldNanos, endNanos, extensions = 0 }: RequestLife, currency: string) {
  const of = ([requests, tokens, concurrency]: RequestLife['key']) =>
    `${requests} requests and ${tokens} tokens a minute, ${concurrency} at once`;
  const grown = endNanos === undefined ? '' : `, ${formatNanos(endNanos, currency)} in the end`;
  const times = extensions === 1 ? 'once' : `${extensions} times`;
  const extended = extensions === 0 ? '' : `; extended ${times}`;
  return [
    ['Limits', `key ${of(key)}; tenant ${of(tenant)}`],
    ['Hold', `${formatNanos(heldNanos, currency)}${grown}${extended}`],
  ] satisfies [string, string][];
}

const firstOf = (life: RequestLife | null) =>
  life?.firstMs === undefined ? '' : `, the first after ${seconds(life.firstMs)}`;
const seconds = (ms: number) => `${(Math.max(0, ms) / 1_000).toFixed(3)} s`;

/** " (sim-small, messages[0].role)" */
function aboutOf({ model, param }: RefusedRequest): string {
  const names = [model, param].filter((name) => name !== undefined).map(printable);
  return names.length === 0 ? '' : ` (${names.join(', ')})`;
}

function stateOf({
  key,
  tenant,
  admitted,
  obstacles,
  models,
  limits,
  budgets,
  credit,
  refused,
  currency,
}: ExplainedKey) {
  const limit = (whose: 'key' | 'tenant') => {
    if (!limits) return 'the configuration has no such plan or profile';
    const { requestsPerMinute, requestsRemaining, tokensPerMinute, tokensRemaining, concurrency } = limits[whose];
    const left = (amount: number | undefined) => (amount === undefined ? '' : ` (${amount} left)`);
    return (
      `${requestsPerMinute} requests${left(requestsRemaining)} and ${tokensPerMinute} tokens` +
      `${left(tokensRemaining)} a minute, ${concurrency} at once`
    );
  };
  const budget = ({ monthlyBudgetCents, setBy, spentNanos }: ExplainedKey['budgets']['key']) =>
    monthlyBudgetCents === null
      ? 'none'
      : `${formatCents(monthlyBudgetCents, currency)} a month, set by the ${setBy}; ` +
        `${formatNanos(spentNanos, currency)} spent`;
  const { admission } = credit;
  const money = admission
    ? `${formatNanos(admission.spendableNanos, currency)} to spend, ` +
      `${formatNanos(admission.heldNanos, currency)} of it held by ${admission.runningRequests} running requests`
    : 'not known at the moment';
  const verdict = admitted === null ? 'not known: the admission store does not answer' : admitted ? 'yes' : 'no';
  const shown = refused.map((one) => `  ${one.at}  ${one.id}  ${one.code}${aboutOf(one)}: ${refusal(one, currency)}`);
  const text = [
    lines([
      ['Admitted now', verdict],
      ...obstacles.map((one) => ['In the way', hindrance(one)] as [string, string]),
      ['Key', `${key.id} (${printable(key.name)}), ${key.status}, profile ${key.profile}`],
      ['Tenant', `${tenant.id} (${printable(tenant.name)}), ${tenant.status}, plan ${tenant.plan}`],
      ['Models', models.length > 0 ? models.join(', ') : 'none'],
      ['Limits of the key', limit('key')],
      ['Limits of the tenant', limit('tenant')],
      ['Budget of the key', budget(budgets.key)],
      ['Budget of the tenant', budget(budgets.tenant)],
      ['Credit', money],
    ]),
    ...(shown.length > 0 ? ['', 'Last refused requests that are kept:', ...shown] : []),
  ];
  return text.join('\n');
}
