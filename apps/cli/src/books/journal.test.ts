import { constants } from 'node:buffer';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JournalHead } from '@tollgate/contracts';
import type { Context } from '../command/context';
import { compareJournal } from './journal';

const LINE_BYTES = 1 << 20;
const head = (sequence: number) => ({ tenantId: `ten_${'0'.repeat(26)}`, sequence, hash: 'a'.repeat(64) });

it('the heads in a log are compared, also of one that is longer than a string can be', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-journal-'));
  const file = join(folder, 'billing.log');
  const log = openSync(file, 'w');
  const { tenantId, hash } = head(0);
  // Between the heads, the file has holes.
  for (let line = 1; (line - 1) * LINE_BYTES <= constants.MAX_STRING_LENGTH; line++)
    writeSync(log, `\n{"heads":["${tenantId} ${line} ${hash}"]}\n`, line * LINE_BYTES);
  closeSync(log);
  const compared: JournalHead[] = [];
  const client = {
    post: (_: string, { heads }: { heads: JournalHead[] }) => {
      compared.push(...heads);
      return Promise.resolve({ data: { differences: [] } });
    },
  };
  const context = { client, output: { answer: () => {} } } as unknown as Context;
  try {
    expect(await compareJournal(context, file)).toBe(true);
    expect([compared[0], compared.at(-1)]).toEqual([head(1), head(compared.length)]);
    expect(compared.length * LINE_BYTES).toBeGreaterThan(constants.MAX_STRING_LENGTH);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('a file of heads that cannot be read is named with the reason', async () => {
  const compared = (file: string) => compareJournal({} as Context, file);
  await expect(compared(tmpdir())).rejects.toThrow(`${tmpdir()} cannot be read: it is a directory.`);
  const none = join(tmpdir(), 'tollgate-no-such-file');
  await expect(compared(none)).rejects.toThrow(`${none} cannot be read: there is no such file or directory.`);
});
