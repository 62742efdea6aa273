import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize, posix, resolve } from 'node:path';

export const ROOT = resolve(__dirname, '../..');
const MAX_PROSE_COLUMNS = 100;
const MAX_CELL_CHARACTERS = 120;

/** A word of inline code that begins with one of these folders of the repository is a path. */
const TOP_FOLDERS = ['apps', 'libs', 'docs', 'test', 'tools', 'deploy', '.ci'];
/** Folders of a package. A path in its README may begin with them. */
const PACKAGE_FOLDERS = ['src', 'bench'];
/** A word with a slash and one of these endings is the name of one of our files. */
const FILE = /^[^/].*\.(ts|mjs|cjs|lua|sql|md|sh|cfg|ya?ml)$/;
/** Placeholders for any name: `<service>`, `…`. */
const PLACEHOLDER = /<[\w-]+>|…/g;

/** Every Markdown file of the repository, by its path from the root. */
export function documents(): string[] {
  const isOurs = (path: string) => !/(^|\/)(node_modules|dist|\.tollgate|\.python)(\/|$)/.test(path);
  const folders = ['docs', 'apps', 'libs', 'deploy', 'test', 'tools'].map((folder) => `${folder}/**/*.md`);
  return globSync(['*.md', ...folders], { cwd: ROOT, exclude: (path) => !isOurs(path) })
    .filter(isOurs)
    .sort();
}

export const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

interface Line {
  number: number;
  text: string;
}

/** The lines outside of code blocks. */
function linesOf(text: string): Line[] {
  let fence: string | null = null;
  return text.split('\n').flatMap((line, index) => {
    const [, mark] = /^\s*(```+|~~~+)/.exec(line) ?? [];
    if (fence !== null) {
      if (mark === fence) fence = null;
      return [];
    }
    if (mark !== undefined) {
      fence = mark;
      return [];
    }
    return [{ number: index + 1, text: line }];
  });
}

const isTable = ({ text }: Line) => /^\s*\|/.test(text);
const length = (text: string) => [...text].length;

/** The lines of prose and the cells of tables that are too long. A URL does not count, because it cannot be broken. */
export function overlong(path: string, text: string): string[] {
  return linesOf(text).flatMap((line) => {
    const at = `${path}:${line.number}`;
    if (isTable(line)) {
      const cells = line.text.split(/(?<!\\)\|/).map((cell) => length(cell.trim()));
      return cells.filter((cell) => cell > MAX_CELL_CHARACTERS).map((cell) => `${at}: a cell of ${cell} characters`);
    }
    const columns = length(line.text.replace(/https?:\/\/\S+/g, ''));
    return columns > MAX_PROSE_COLUMNS ? [`${at}: ${columns} columns`] : [];
  });
}

/** The prose without code blocks, as one text, because inline code and links may continue on the next line. */
const proseOf = (text: string) =>
  linesOf(text)
    .map((line) => line.text)
    .join('\n');

/**
 * The paths in inline code and links of a document that do not exist in the repository.
 *
 * - A word of inline code with a slash is a path if it begins with a top folder of the repository or ends like a source
 *   file. In the README of a package, also if it begins with `src/` or `bench/`, which are those of the package.
 * - It must be the full path of a file or a folder: `test/gateway/money` for `money.test.ts` is missing.
 * - `*` matches as in a shell, and `<name>` and `…` match like `*`. They must match something.
 * - `{a,b}` stands for both names as in a shell, and both must exist.
 * - A built file (`dist/*.js`) stands for its source.
 */
export function missing(path: string, text: string): string[] {
  const prose = proseOf(text);
  const code = [...prose.matchAll(/(?<!`)`([^`]+)`(?!`)/g)].flatMap(([, code]) => code!.split(/\s+/));
  const paths = code.filter((word) => isPath(path, word)).filter((word) => !exists(inRepository(path, word)));
  const links = [...prose.replace(/`[^`]*`/g, '').matchAll(/\]\(([^()\s]+)\)/g)]
    .map(([, target]) => target!)
    .filter((target) => !/^[a-z]+:/.test(target) && !leads(path, text, target));
  return [...new Set([...paths, ...links])].map((name) => `${path}: ${name}`);
}

/**
 * The names that a document places in a file (`name` in `path`), but that are not in the file. If the path is a pattern
 * (`{a,b}`), the name must be in each file.
 */
export function misplaced(path: string, text: string): string[] {
  return [...proseOf(text).matchAll(/`([\w.]+(?: [\w.]+)*)`\s+in\s+`([^`\s]+)`/g)].flatMap(([, name, where]) =>
    filesOf(inRepository(path, where!))
      .filter((file) => !hasWord(textOf(file), name!))
      .map((file) => `${path}: ${name} in ${file}`),
  );
}

/** The files of a path, which may be a pattern. None if it is not the path of a file. */
const filesOf = (path: string): string[] =>
  globSync(path.replace(PLACEHOLDER, '*'), { cwd: ROOT }).filter((file) => statSync(join(ROOT, file)).isFile());

export interface RuleRow {
  question: string;
  where: string;
}

/** The rows of the tables of rules: question, answer, and the place that decides it. */
export function ruleRows(text: string): RuleRow[] {
  return linesOf(text).flatMap((line) => {
    const cells = line.text.split(/(?<!\\)\|/).map((cell) => cell.trim());
    const [, question, , where] = cells;
    const isRow = isTable(line) && cells.length === 5 && question !== 'question' && !/^-+$/.test(question!);
    return isRow && /`[^`]+\/[^`]+`/.test(where!) ? [{ question: question!, where: where! }] : [];
  });
}

/** The names in the brackets after a term of the glossary, `**Term** (\`Name\`, …):`, that are in no source. */
export function unknownTerms(text: string): string[] {
  const brackets = [...text.matchAll(/^- \*\*[^*]+\*\* \(([^)]+)\):/gm)].map(([, names]) => names!);
  const names = brackets.flatMap((inside) => [...inside.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
  const sources = globSync('{apps,libs}/*/src/**/*.ts', { cwd: ROOT }).map(textOf).join('\n');
  return names.filter((name) => !hasWord(sources, name));
}

const hasWord = (text: string, word: string): boolean => new RegExp(`\\b${word.replaceAll('.', '\\.')}\\b`).test(text);

const isPackageReadme = (path: string) => /^(?:apps|libs)\/[^/]+\/README\.md$/.test(path);

function isPath(document: string, word: string): boolean {
  const [first, second] = word.split('/');
  if (second === undefined) return false;
  const isNamed = TOP_FOLDERS.includes(first!) || FILE.test(word.replace(/#.*$/, ''));
  return (isNamed && !word.includes('://')) || (isPackageReadme(document) && PACKAGE_FOLDERS.includes(first!));
}

function inRepository(document: string, word: string): string {
  const path = word.replace(/[#:].*$/, '').replace(/[.,;)]+$/, '');
  const isOfPackage = PACKAGE_FOLDERS.includes(path.split('/', 1)[0]!);
  const source = path.replace(/^((?:apps|libs)\/[^/]+)\/dist\/(.*)\.js$/, '$1/src/$2.ts');
  return isOfPackage ? posix.join(dirname(document), source) : source;
}

function exists(name: string): boolean {
  return alternatives(name).every(existsAlone);
}

/** The names that `{a,b}` in a name stands for. */
function alternatives(name: string): string[] {
  const [whole, inside] = /\{([^{}]+)\}/.exec(name) ?? [];
  if (whole === undefined) return [name];
  return inside!.split(',').flatMap((one) => alternatives(name.replace(whole, one)));
}

function existsAlone(path: string): boolean {
  const pattern = path.replace(PLACEHOLDER, '*');
  if (!pattern.includes('*')) return existsSync(join(ROOT, path));
  return globSync(pattern, { cwd: ROOT }).length > 0;
}

/** Whether the file of a link and the heading in it exist. */
function leads(document: string, text: string, target: string): boolean {
  const [file, anchor] = target.split('#') as [string, string | undefined];
  const path = file === '' ? document : normalize(posix.join(dirname(document), file));
  if (file !== '' && !existsSync(join(ROOT, path))) return false;
  if (anchor === undefined) return true;
  const linked = file === '' ? text : statSync(join(ROOT, path)).isFile() ? textOf(path) : '';
  return anchorsOf(linked).includes(anchor);
}

/** The anchor that GitHub makes for a heading. */
function anchorsOf(text: string): string[] {
  const seen = new Map<string, number>();
  return linesOf(text).flatMap((line) => {
    const [, heading] = /^#+\s+(.*?)\s*$/.exec(line.text) ?? [];
    if (heading === undefined) return [];
    const slug = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-');
    const count = seen.get(slug) ?? 0;
    seen.set(slug, count + 1);
    return [count === 0 ? slug : `${slug}-${count}`];
  });
}
