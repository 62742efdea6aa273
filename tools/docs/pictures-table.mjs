import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../setup/prepare.mjs';
import { markdownTable } from './markdown-table.mjs';

const PICTURE = /^(.+)-(light|dark|phone)\.png$/;

/** The pictures of each page of the console, as links and a thumbnail. */
export function picturesTable() {
  const views = new Map();
  for (const file of readdirSync(join(ROOT, 'docs/console'))) {
    const [, page, view] = PICTURE.exec(file) ?? [];
    if (page !== undefined) views.set(page, [...(views.get(page) ?? []), view]);
  }
  const rows = [...views].sort(([a], [b]) => (a < b ? -1 : 1)).map(([page, of]) => rowOf(page, of));
  return markdownTable(['Page', 'Light', 'Dark and on a phone'], rows);
}

function rowOf(page, views) {
  const file = (view) => `${page}-${view}.png`;
  const title = page.charAt(0).toUpperCase() + page.slice(1).replaceAll('-', ' ');
  const others = views.filter((view) => view !== 'light').map((view) => `[${view}](${file(view)})`);
  return [title, `![${title}](${file('light')})`, others.join(', ')];
}
