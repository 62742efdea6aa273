import type { BackendHour, BackendTokens } from '@tollgate/contracts';
import type { Context } from './commands';
import { MAX_LIST_ROWS } from './operator-client';
import { counted, table } from './table';

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
  const drifting = rows.flatMap((row) => [row.prompt, row.generation]).filter(({ verdict }) => verdict === 'drifts');
  const ok = drifting.length === 0;
  output.answer({ ok, hours: rows }, text(rows, drifting.length));
  if (before !== null) output.note(`Only the newest ${MAX_LIST_ROWS} rows are compared: ask for fewer hours.`);
  return ok;
}

function text(rows: readonly BackendHour[], drifting: number): string {
  if (rows.length === 0)
    return "No engine was sampled in this time: name its Prometheus page as a backend's `metrics` in tollgate.yaml.";
  const cells = rows.flatMap((row) => [line(row, 'prompt', row.prompt), line(row, 'generation', row.generation)]);
  const headings = ['BACKEND', 'HOUR (UTC)', 'TOKENS', 'ENGINE', 'BOOKED', 'UNBILLED', 'DRIFT', '', ''];
  const unseen = rows.filter(({ prompt }) => prompt.verdict === 'not_observed').length;
  const unclear = rows.filter(({ prompt, generation }) =>
    [prompt, generation].some((one) => one.verdict === 'unclear'),
  );
  return [
    table(headings, cells, ''),
    '',
    ...(unseen > 0 ? [`${counted(unseen, 'hour')} not observed: the engine was not read at both ends of it.`] : []),
    ...(unclear.length > 0
      ? [
          `${counted(unclear.length, 'hour')} unclear: the difference may be work of cancelled or failed ` +
            'requests (UNBILLED, at most).',
        ]
      : []),
    drifting === 0
      ? 'The engines and the books agree.'
      : `THE ENGINES AND THE BOOKS DRIFT APART in ${counted(drifting, 'place')}: above 0 the engine worked more ` +
        'than was charged.',
  ].join('\n');
}

function line(row: BackendHour, kind: string, tokens: BackendTokens): string[] {
  const { engine, booked, unbilled, drift, driftRatio, verdict } = tokens;
  const judged = verdict !== 'not_observed' && verdict !== 'running';
  return [
    row.backends.join(' '),
    row.hour.slice(0, 'YYYY-MM-DDTHH'.length).replace('T', ' '),
    kind,
    String(engine),
    String(booked),
    unbilled > 0 ? `<= ${unbilled}` : '0',
    judged ? `${drift} (${(driftRatio * 100).toFixed(2)} %)` : '-',
    VERDICTS[verdict],
    row.restarts > 0 ? counted(row.restarts, 'restart') : '',
  ];
}
