// image-files.mjs <app> <out>: what an image of this app holds, for the Dockerfile. <out>/app gets the compiled workspaces, <out>/node_modules the packages that they
// depend on, directly or not, and links to the workspaces; what it takes is read from each package.json, so that no list can go stale.
import { cpSync, existsSync, lstatSync, mkdirSync, readFileSync, realpathSync, symlinkSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const ROOT = process.cwd();
const [app, out] = process.argv.slice(2);

/** What only compilers, debuggers and people read. */
const NOT_LOADED = /\.(d\.[cm]?ts|map|md|markdown|flow)$/i;
/** Parts of packages that Node does not load: other module formats of the same code, and what is for browsers. Half of what is left otherwise. */
const UNUSED = {
  'gpt-tokenizer': ['data', 'esm', 'src'],
  'libphonenumber-js': ['bundle', 'es6', 'es6-modern'],
  rxjs: ['src', 'dist/bundles', 'dist/esm', 'dist/esm5', 'dist/types'],
  'swagger-ui-dist': ['swagger-ui.js', 'swagger-ui-es-bundle.js', 'swagger-ui-es-bundle-core.js'],
  typeorm: ['browser'],
};

const manifestOf = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

/** Where Node finds a package from a folder: the nearest node_modules upwards; undefined when it is not installed. */
function find(name, from) {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name);
    if (existsSync(join(found, 'package.json'))) return found;
    if (folder === ROOT || folder === dirname(folder)) return undefined;
  }
}

/** The packages that this one cannot do without, and those that it uses where they are installed. */
function wants({ dependencies = {}, optionalDependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} }) {
  const optional = new Set(Object.keys(optionalDependencies));
  const peers = Object.keys(peerDependencies).filter((name) => !peerDependenciesMeta[name]?.optional);
  return [...new Set([...Object.keys(dependencies), ...optional, ...peers])].map((name) => ({
    name,
    required: !optional.has(name),
  }));
}

const seen = new Set([join(ROOT, app)]);
for (const folder of seen) {
  const manifest = manifestOf(folder);
  for (const { name, required } of wants(manifest)) {
    const found = find(name, realpathSync(folder));
    if (found) seen.add(found);
    else if (required) throw new Error(`${manifest.name} needs ${name}, which is not installed`);
  }
}

for (const folder of seen) {
  const path = relative(ROOT, folder);
  const isLink = lstatSync(folder).isSymbolicLink();
  if (isLink) {
    const link = resolve(out, path);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(relative(dirname(folder), realpathSync(folder)), link);
  }
  if (isLink || folder === join(ROOT, app)) {
    for (const part of ['package.json', 'dist']) {
      const source = join(realpathSync(folder), part);
      cpSync(source, join(out, 'app', relative(ROOT, source)), { recursive: true });
    }
    continue;
  }
  const unused = (UNUSED[manifestOf(folder).name] ?? []).map((part) => join(folder, part));
  const wanted = (source) =>
    !NOT_LOADED.test(source) && !unused.includes(source) && source !== join(folder, 'node_modules');
  // A package of a workspace's own, at another version than the root's, lies beside the workspace.
  const to = path.startsWith('node_modules') ? join(out, path) : join(out, 'app', path);
  cpSync(folder, to, { recursive: true, filter: wanted });
}
