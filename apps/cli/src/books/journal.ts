import { MAX_COMPARED_HEADS, type Difference, type JournalHead, type Page } from '@tollgate/contracts';
import { fileProblem } from '@tollgate/runtime/file-problem';
import { createReadStream } from 'node:fs';
import type { Context } from '../command/context';
import { Failure } from '../command/failure';
import { counted, table } from '../command/table';

const PAGE_ROWS = 200;
/** Heads in the table of differences. `--json` has all. */
const MAX_SHOWN = 20;
/** Anywhere in a line, so that a log with heads can be passed unchanged. */
const HEAD = /\b(ten_[0-9a-z]{26}) ([1-9]\d{0,15}) ([0-9a-f]{64})\b/g;

/** Prints the newest entry of each tenant's journal with its hash, one per line, to be kept elsewhere. */
export async function showHeads({ client, output }: Context): Promise<void> {
  const heads: JournalHead[] = [];
  for (let after: string | null = ''; after !== null;) {
    const query: string = `limit=${PAGE_ROWS}${after === '' ? '' : `&after=${encodeURIComponent(after)}`}`;
    const page: Page<JournalHead> = await client.get(`/journal/heads?${query}`);
    heads.push(...page.data);
    after = page.nextCursor;
  }
  output.answer(heads, heads.map(({ tenantId, sequence, hash }) => `${tenantId} ${sequence} ${hash}`).join('\n'));
}

/** False if the journal was changed since the heads of this file were kept. */
export async function compareJournal({ client, output }: Context, file: string): Promise<boolean> {
  const heads = await readHeads(file);
  const differences: Difference[] = [];
  for (let from = 0; from < heads.length; from += MAX_COMPARED_HEADS) {
    const body = { heads: heads.slice(from, from + MAX_COMPARED_HEADS) };
    const { data } = await client.post<{ data: { differences: Difference[] } }>('/journal/compare', body);
    differences.push(...data.differences);
  }
  const ok = differences.length === 0;
  output.answer({ ok, heads: heads.length, differences }, text(heads.length, differences));
  return ok;
}

function text(heads: number, differences: readonly Difference[]): string {
  if (differences.length === 0)
    return `Unchanged: the journal has ${counted(heads, 'head')} of this file. Check the hashes: tollgate reconcile.`;
  const rows = differences
    .slice(0, MAX_SHOWN)
    .map(({ tenantId, expected, actual, ids }) => [tenantId, expected, actual, ids.join(' ')]);
  return [
    `THE JOURNAL WAS CHANGED. Heads that are no longer in it: ${differences.length} of ${heads}.`,
    'The change is in this entry or in one before it:',
    table(['TENANT', 'EXPECTED', 'ACTUAL', 'ID'], rows, ''),
    ...(differences.length > MAX_SHOWN ? [`Only the first ${MAX_SHOWN} of them are shown.`] : []),
  ].join('\n');
}

async function readHeads(file: string): Promise<JournalHead[]> {
  const heads = new Set<string>();
  try {
    for await (const line of linesOf(file)) for (const [head] of line.matchAll(HEAD)) heads.add(head);
  } catch (error) {
    throw new Failure(`${file} cannot be read: ${fileProblem(error)}.`, 'unreadable_file');
  }
  if (heads.size === 0)
    throw new Failure(`${file} has no heads: keep the output of tollgate journal heads.`, 'unreadable_file');
  return [...heads].map((head) => {
    const [tenantId, sequence, hash] = head.split(' ') as [string, string, string];
    return { tenantId, sequence: Number(sequence), hash };
  });
}

/** One after the other, because a log may be longer than a string. Not by readline, which keeps errors of the file. */
async function* linesOf(file: string): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of createReadStream(file, 'utf8') as AsyncIterable<string>) {
    const lines = chunk.split('\n');
    lines[0] = rest + lines[0]!;
    rest = lines.pop()!;
    yield* lines;
  }
  yield rest;
}
