import { isId } from '@tollgate/contracts';
import { readFileSync } from 'node:fs';

/** A script of the build: Vite's manifest names it by its source, and other scripts by theirs. */
interface Chunk {
  file: string;
  imports?: string[];
}

/** The cookie of better-auth, whatever its prefix. */
const SESSION_COOKIE = /session_token=/;
/** The parts of paths whose pages ask who is signed in at once. */
const ASKING_AREAS = ['', 't', 'operator', 'account', 'invitation'];
/** Where `/console` leads most people. */
const FIRST_PAGE = 'overview';

/**
 * What the browser can load while it reads the scripts that all pages share: the scripts of the page that the path
 * names (`web/src/pages`), who is signed in, and the numbers of the Overview. Otherwise it would ask for one after the
 * other.
 */
export class Preloads {
  private readonly chunks: Readonly<Record<string, Chunk>>;

  constructor(manifest: string) {
    this.chunks = JSON.parse(readFileSync(manifest, 'utf8')) as Record<string, Chunk>;
  }

  /** Elements for the head of the page. `path`: without a query string. */
  of(path: string, cookie = ''): string {
    if (!SESSION_COOKIE.test(cookie)) return this.scriptsOf(pageOf(path));
    return answersOf(path) + this.scriptsOf(pageOf(path) || FIRST_PAGE);
  }

  private scriptsOf(page: string): string {
    const known = new Set(this.withImports('index.html'));
    return this.withImports(`src/pages/${page}.tsx`)
      .filter((name) => !known.has(name))
      .map((name) => `<link rel="modulepreload" href="/console/${this.chunks[name]!.file}">`)
      .join('');
  }

  /** The script and all that it imports; empty if there is no such script. */
  private withImports(name: string, seen = new Set<string>()): string[] {
    if (seen.has(name) || !Object.hasOwn(this.chunks, name)) return [...seen];
    seen.add(name);
    for (const imported of this.chunks[name]!.imports ?? []) this.withImports(imported, seen);
    return [...seen];
  }
}

/**
 * The path of the Overview names the tenant. Only an id is put into the page. A page that does not ask who is signed in
 * gets nothing: a later sign-in would find the earlier answer.
 */
function answersOf(path: string): string {
  const [, , area = '', tenantId, ...page] = path.split('/');
  if (!ASKING_AREAS.includes(area)) return '';
  const isOverview = area === 't' && isId('ten', tenantId) && page.join('/') === 'overview';
  return answer('me') + (isOverview ? answer(`tenants/${tenantId}/overview`) : '');
}

/**
 * With this attribute the browser takes it for the `fetch` of the page (`web/src/backend/api.ts`), and does not ask
 * twice.
 */
const answer = (path: string): string => `<link rel="preload" as="fetch" href="/console/api/${path}" crossorigin>`;

/**
 * `/console/t/<id>/settings/tokens` is of `pages/tokens.tsx`, and `/console/operator/fleet` of `operator-fleet.tsx`.
 */
function pageOf(path: string): string {
  const [, , area, ...rest] = path.split('/');
  const last = rest.at(-1) ?? area ?? '';
  return area === 'operator' ? `operator-${last}` : last;
}
