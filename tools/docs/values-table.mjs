// The table of the values of the chart, from the comments in its values.yaml.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMap, parseDocument } from 'yaml';
import { ROOT } from '../setup/prepare.mjs';
import { markdownTable } from './markdown-table.mjs';

/** A value without a comment has the comment of the same value of the first of these services. */
const MODELS = ['gateway', 'auth', 'metering'];

/** A row for each value. A map with a comment of its own is one value. */
export function valuesTable() {
  const document = parseDocument(readFileSync(join(ROOT, 'deploy/chart/values.yaml'), 'utf8'));
  const found = valuesOf(document.contents, []);
  const descriptions = new Map(found.map(({ path, comment }) => [path.join('.'), comment]));
  return markdownTable(
    ['Value', 'Default', 'What it is for'],
    found.map(({ path, value, comment }) => {
      const others = MODELS.map((model) => descriptions.get([model, ...path.slice(1)].join('.')));
      const description = comment ?? others.find((other) => other !== undefined);
      if (description === undefined) throw new Error(`values.yaml: ${path.join('.')} has no comment`);
      return [`\`${path.join('.')}\``, value === '' ? '–' : `\`${value}\``, description];
    }),
  );
}

/** The values below a map: their paths, defaults as YAML in one line, and comments. */
function valuesOf(map, above) {
  return map.items.flatMap(({ key, value }) => {
    const path = [...above, key.value];
    // The comment of the first value of a map is the comment of the map. A comment is about what follows it without a
    // gap.
    const comment = (
      key.commentBefore ?? (map.items[0].key === key && above.length > 0 ? map.commentBefore : undefined)
    )
      ?.split(/\n\s*\n/)
      .at(-1);
    const described = comment?.replace(/\s*\n\s*/g, ' ').trim();
    const isGroup = isMap(value) && value.items.length > 0 && (described === undefined || hasComments(value));
    if (isGroup && !SHORT.test(JSON.stringify(value))) return valuesOf(value, path);
    return [{ path, value: shown(value.toJSON()), comment: described }];
  });
}

/** Requests and limits are one value, wherever they have no comment. */
const SHORT = /^\{"requests":/;
const hasComments = (map) => map.commentBefore != null || map.items.some(({ key }) => key.commentBefore != null);

function shown(value) {
  if (value === null || typeof value !== 'object') return String(value);
  const parts = Array.isArray(value)
    ? value.map(shown)
    : Object.entries(value).map(([name, part]) => `${name}: ${shown(part)}`);
  const text = parts.join(', ');
  return Array.isArray(value) ? `[${text}]` : `{${text}}`;
}
