import type { BackendHour, BackendTokens } from '@tollgate/contracts';
import type { Context } from '../command/context';
import { MAX_LIST_ROWS } from '../command/operator-client';
import { counted, table } from '../command/table';

const VERDICTS = {
  agrees: '',
  unclear: 'unclear',
  drifts: 'DRIFTS',
  not_observed: 'not observed',
  running: 'not over yet',
};

/** False if the books cannot explain an engine's counters. */
export async function reconcileBackends({ client, output }: Context, hours: number): Promise<boolean> {
  const rows: BackendHour[] = [];
  let before: string | null = null;
  do {
    const query: string = `hours=${hours}${before === null ? '' : `&before=${encodeURIComponent(before)}`}`;
    const page: { data: BackendHour[]; nextCursor: string | null } = await client.get(`/reconcile/backends?${query}`);
    rows.push(...page.data);
    before = page.nextCursor;
  } while (before !== null && rows.length < MAX_LIST_ROWS);
  const drifts = rows.flatMap(tokensOf).filter(({ verdict }) => verdict === 'drifts').length;
  const ok = drifts === 0;
  output.answer({ ok, compared: rows.filter(isCompared).length, hours: rows }, comparison(rows));
  if (before !== null) output.note(`Only the newest ${MAX_LIST_ROWS} rows are compared: ask for fewer hours.`);
  return ok;
}

const tokensOf = ({ prompt, generation }: BackendHour) => [prompt, generation];
const isJudged = ({ verdict }: BackendTokens) => verdict !== 'not_observed' && verdict !== 'running';
const isCompared = (row: BackendHour) => tokensOf(row).some(isJudged);

/** The rows as text, with what they prove. */
export function comparison(rows: readonly BackendHour[]): string {
  if (rows.length === 0)
    return (
      'Nothing was compared: no engine was sampled in this time. ' +
      "Name its Prometheus page as a backend's `metrics` in tollgate.yaml."
    );
  const cells = rows.flatMap((row) => [line(row, 'prompt', row.prompt), line(row, 'generation', row.generation)]);
  const headings = ['BACKEND', 'HOUR (UTC)', 'TOKENS', 'ENGINE', 'BOOKED', 'UNBILLED', 'DRIFT', '', ''];
  const having = (verdict: BackendTokens['verdict']) =>
    rows.filter((row) => tokensOf(row).some((one) => one.verdict === verdict)).length;
  const [unseen, running, unclear] = [having('not_observed'), having('running'), having('unclear')];
  return [
    table(headings, cells, ''),
    '',
    ...(unseen > 0 ? [`${counted(unseen, 'hour')} not observed: the engine was not read at both ends of it.`] : []),
    ...(running > 0
      ? [`${counted(running, 'hour')} not over yet: the hour, or a request that began in it, has not ended.`]
      : []),
    ...(unclear > 0
      ? [
          `${counted(unclear, 'hour')} unclear: the difference may be work of cancelled or failed ` +
            'requests (UNBILLED, at most).',
        ]
      : []),
    conclusion(rows),
  ].join('\n');
}

function conclusion(rows: readonly BackendHour[]): string {
  const count = (verdict: BackendTokens['verdict']) =>
    rows.flatMap(tokensOf).filter((one) => one.verdict === verdict).length;
  const compared = rows.filter(isCompared).length;
  if (compared === 0) return 'Nothing was compared.';
  const drifting = count('drifts');
  if (drifting > 0)
    return (
      `THE ENGINES AND THE BOOKS DRIFT APART in ${counted(drifting, 'place')}: above 0 the engine worked more ` +
      'than was charged.'
    );
  const hours = compared === 1 ? '1 hour that was compared' : `${compared} hours that were compared`;
  return count('agrees') === 0
    ? `The engines and the books do not contradict each other in the ${hours}, but every difference is unclear.`
    : `The engines and the books agree in the ${hours}.`;
}

function line(row: BackendHour, kind: string, tokens: BackendTokens): string[] {
  const { engine, booked, unbilled, drift, driftRatio, verdict } = tokens;
  return [
    row.backends.join(' '),
    row.hour.slice(0, 'YYYY-MM-DDTHH'.length).replace('T', ' '),
    kind,
    String(engine),
    String(booked),
    unbilled > 0 ? `<= ${unbilled}` : '0',
    isJudged(tokens) ? `${drift} (${(driftRatio * 100).toFixed(2)} %)` : '-',
    VERDICTS[verdict],
    row.restarts > 0 ? counted(row.restarts, 'restart') : '',
  ];
}
