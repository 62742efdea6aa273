import { csvOf } from './csv';

/** Lets the browser save the rows as a file. */
export function downloadCsv(name: string, rows: readonly object[]): void {
  const url = URL.createObjectURL(new Blob([csvOf(rows)], { type: 'text/csv' }));
  Object.assign(document.createElement('a'), { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}
