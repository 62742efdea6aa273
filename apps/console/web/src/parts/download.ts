import { csvOf } from './csv';

/** A browser may read the file a moment after the click, for example when it asks where to save it. */
const READ_WITHIN_MS = 60_000;

/** Lets the browser save the rows as a file. */
export function downloadCsv(name: string, rows: readonly object[]): void {
  const url = URL.createObjectURL(new Blob([csvOf(rows)], { type: 'text/csv' }));
  Object.assign(document.createElement('a'), { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), READ_WITHIN_MS);
}
