// Copies the files of each app's image, for the Dockerfile. Finds them by each package.json, so that there is no list
// to maintain. Usage: image-files.mjs packages|workspaces <out> <app>…
//   packages    <out>/<app> gets the packages that the app needs, directly or not, and links to its workspaces
//   workspaces  <out>/<app> gets the compiled app and the libraries that it needs
// Two parts, because packages seldom change and then come from the cache.
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';

const ROOT = process.cwd();
const SCOPE = '@tollgate/';
const [part, out, ...apps] = process.argv.slice(2);

/** Files that only compilers, debuggers and people read. */
const NOT_LOADED = /\.(d\.[cm]?ts|map|md|markdown|flow)$/i;
/**
 * Parts of packages that Node does not load: other module formats, and files for browsers. Without this list, the
 * packages would be twice as large.
 */
const UNUSED = {
  'gpt-tokenizer': ['data', 'esm', 'src'],
  'libphonenumber-js': ['bundle', 'es6', 'es6-modern'],
  rxjs: ['src', 'dist/bundles', 'dist/esm', 'dist/esm5', 'dist/types'],
  'swagger-ui-dist': ['swagger-ui.js', 'swagger-ui-es-bundle.js', 'swagger-ui-es-bundle-core.js'],
  typeorm: ['browser'],
};

const manifestOf = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
const workspaceOf = (name) => join(ROOT, 'libs', name.slice(SCOPE.length));

/** An app and every library that it needs, directly or not. */
function workspacesOf(app) {
  const found = new Set([join(ROOT, 'apps', app)]);
  for (const folder of found) {
    for (const name of Object.keys(manifestOf(folder).dependencies ?? {}))
      if (name.startsWith(SCOPE)) found.add(workspaceOf(name));
  }
  return found;
}

/** The folder of every installed package that these workspaces need, directly or not. */
function packagesOf(workspaces) {
  const seen = new Set(workspaces);
  for (const folder of seen) {
    const manifest = manifestOf(folder);
    const { dependencies = {}, optionalDependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = manifest;
    const peers = Object.keys(peerDependencies).filter((name) => !peerDependenciesMeta[name]?.optional);
    for (const name of [...Object.keys(dependencies), ...Object.keys(optionalDependencies), ...peers]) {
      if (name.startsWith(SCOPE)) continue;
      const found = find(name, folder);
      if (found) seen.add(found);
      else if (!(name in optionalDependencies))
        throw new Error(`${manifest.name} needs ${name}, which is not installed`);
    }
  }
  return [...seen].filter((folder) => !workspaces.has(folder));
}

/** The folder in which Node finds a package: the nearest node_modules upwards. Undefined if it is not installed. */
function find(name, from) {
  for (let folder = from; folder.startsWith(ROOT); folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name);
    if (existsSync(join(found, 'package.json'))) return found;
  }
  return undefined;
}

function copyPackage(folder, to) {
  const unused = (UNUSED[manifestOf(folder).name] ?? []).map((part) => join(folder, part));
  const wanted = (path) => !NOT_LOADED.test(path) && !unused.includes(path) && path !== join(folder, 'node_modules');
  // Keeps the place of a package that is in a workspace or another package, because it has another version there.
  cpSync(folder, join(to, relative(ROOT, folder)), { recursive: true, filter: wanted });
}

for (const app of apps) {
  const to = join(out, app);
  const workspaces = workspacesOf(app);
  if (part === 'packages') {
    for (const folder of packagesOf(workspaces)) copyPackage(folder, to);
    const scope = join(to, 'node_modules', SCOPE);
    mkdirSync(scope, { recursive: true });
    for (const folder of workspaces)
      symlinkSync(relative(scope, join(to, relative(ROOT, folder))), join(scope, basename(folder)));
  } else {
    for (const folder of workspaces) {
      for (const name of ['package.json', 'dist'])
        cpSync(join(folder, name), join(to, relative(ROOT, folder), name), { recursive: true });
    }
  }
}
