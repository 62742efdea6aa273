import {
  OTHER_FAMILIES,
  OTHER_NAMES,
  SERVICE_LINK_VALUE,
  SERVICE_LINKS,
  SETTING_FAMILIES,
  SETTING_NAMES,
} from './known-names';

const OWN_PREFIX = /^TOLLGATE_/;
/** Of a secret: the file that has it. */
const FILE_SUFFIX = /_FILE$/;
/** A name with more differences is another name, not a misspelled one. */
const MAX_EDITS = 2;

/**
 * A warning about variables `TOLLGATE_…` that no process reads, or undefined if there are none. An empty value counts
 * as unset. `configText` reads tollgate.yaml, which may name variables as `${NAME}`. The warning contains no values.
 */
export function unknownSettings(env: NodeJS.ProcessEnv, configText: () => string): string | undefined {
  const candidates = Object.entries(env).flatMap(([name, value]) =>
    OWN_PREFIX.test(name) && value && !isKnown(name, value) ? [name] : [],
  );
  if (candidates.length === 0) return undefined;
  const config = configText();
  const unknown = candidates.filter((name) => !config.includes(`\${${name}}`));
  if (unknown.length === 0) return undefined;
  return unknown
    .sort()
    .map((name) => {
      const near = nearestTo(name);
      return `${name} is not a setting${near === undefined ? '.' : `; did you mean ${near}?`}`;
    })
    .join(' ');
}

function isKnown(name: string, value: string): boolean {
  const names = [name, name.replace(FILE_SUFFIX, '')];
  return (
    names.some((one) => SETTING_NAMES.includes(one) || OTHER_NAMES.includes(one)) ||
    [...SETTING_FAMILIES.values(), ...OTHER_FAMILIES, SERVICE_LINKS].some((family) => family.test(name)) ||
    SERVICE_LINK_VALUE.test(value)
  );
}

/** The setting with the fewest differences, if they are few. */
function nearestTo(name: string): string | undefined {
  const suffix = FILE_SUFFIX.exec(name)?.[0] ?? '';
  const candidates = SETTING_NAMES.flatMap((one) => (suffix ? [one, one + suffix] : [one]));
  const [nearest] = candidates
    .map((one) => ({ one, edits: editsBetween(name, one) }))
    .filter(({ edits }) => edits <= MAX_EDITS)
    .sort((a, b) => a.edits - b.edits);
  return nearest?.one;
}

/** The characters to add, drop or replace to get from one text to the other (Levenshtein). */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (const [above, character] of [...from].entries()) {
    const next = [above + 1];
    for (let at = 0; at < to.length; at++)
      next.push(Math.min(next[at]! + 1, row[at + 1]! + 1, row[at]! + (to[at] === character ? 0 : 1)));
    row = next;
  }
  return row[to.length]!;
}
