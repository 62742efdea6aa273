import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize, posix, resolve } from 'node:path';

export const ROOT = resolve(__dirname, '../..');
export const MAX_PROSE_COLUMNS = 100;
export const MAX_CELL_CHARACTERS = 120;

/** Folders of the repository by which a word in inline code is known to be a path. */
const TOP_FOLDERS = ['apps', 'libs', 'docs', 'test', 'tools', 'deploy', '.ci'];
/** Folders of a package: in its README a path may begin with them. */
const PACKAGE_FOLDERS = ['src', 'bench'];
/** By its ending a word with a slash is the name of one of our files, wherever it begins. */
const FILE = /^[^/].*\.(ts|mjs|cjs|lua|sql|md|sh|cfg|ya?ml)$/;
/** What stands for any name: `<service>`, `…`. */
const PLACEHOLDER = /<[\w-]+>|…/g;

/** Every Markdown file of the repository, by its path from the root. */
export function documents(): string[] {
  const isOurs = (path: string) => !/(^|\/)(node_modules|dist|\.tollgate)(\/|$)/.test(path);
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

/** Lines of prose that are too long, and cells of tables. What cannot be broken (a URL) does not count. */
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

/** Prose without code blocks, as one text: inline code and links may run over the end of a line. */
const proseOf = (text: string) =>
  linesOf(text)
    .map((line) => line.text)
    .join('\n');

/**
 * What the inline code and the links of a document name and the repository does not have. A word of inline code with a
 * slash is a path when it begins with a folder at the top of the repository or ends like a source file; in the README
 * of a package also when it begins with `src/` or `bench/`, which are the package's. It must be a file or a folder,
 * whole: `test/gateway/money` for `money.test.ts` is refused. `*` and `{a,b}` match as in a shell, `<name>` and `…`
 * like `*`; they must match something. A built file (`dist/*.js`) stands for its source.
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

/** Names of code that a document finds in a file (`name` in `path`) and that the file does not have. */
export function misplaced(path: string, text: string): string[] {
  return [...proseOf(text).matchAll(/`(\w+)`\s+in\s+`([^`\s]+)`/g)]
    .map(([, name, file]) => ({ name: name!, file: inRepository(path, file!) }))
    .filter(({ file }) => existsSync(join(ROOT, file)) && statSync(join(ROOT, file)).isFile())
    .filter(({ name, file }) => !hasWord(textOf(file), name))
    .map(({ name, file }) => `${path}: ${name} in ${file}`);
}

/** Names of code in the brackets behind a term, `**Term** (\`Name\`, …):`, that no source has. */
export function unknownTerms(text: string): string[] {
  const brackets = [...text.matchAll(/^- \*\*[^*]+\*\* \(([^)]+)\):/gm)].map(([, names]) => names!);
  const names = brackets.flatMap((inside) => [...inside.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
  const sources = globSync('{apps,libs}/*/src/**/*.ts', { cwd: ROOT }).map(textOf).join('\n');
  return names.filter((name) => !hasWord(sources, name));
}

const hasWord = (text: string, word: string): boolean => new RegExp(`\\b${word}\\b`).test(text);

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

function exists(path: string): boolean {
  const pattern = path.replace(PLACEHOLDER, '*');
  if (!/[*{]/.test(pattern)) return existsSync(join(ROOT, path));
  return globSync(pattern, { cwd: ROOT }).length > 0;
}

/** Whether the file of a link is there, and the heading that it names. */
function leads(document: string, text: string, target: string): boolean {
  const [file, anchor] = target.split('#') as [string, string | undefined];
  const path = file === '' ? document : normalize(posix.join(dirname(document), file));
  if (file !== '' && !existsSync(join(ROOT, path))) return false;
  if (anchor === undefined) return true;
  const linked = file === '' ? text : statSync(join(ROOT, path)).isFile() ? textOf(path) : '';
  return anchorsOf(linked).includes(anchor);
}

/** As GitHub makes them of headings. */
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
