// image-files.mjs <out>: sorts the compiled workspaces by image, for the Dockerfile. For each target <out>/<target>/workspaces has the arguments of npm that
// name its workspaces, and <out>/<target>/app their files. What an app needs is read from what it loads, so that no list can go stale.
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const TARGETS = {
  gateway: ['apps/gateway'],
  auth: ['apps/auth'],
  metering: ['apps/metering'],
  billing: ['apps/billing'],
  simulator: ['apps/simulator'],
  // The command line, with every service's migrations.
  tools: ['apps/cli', 'apps/auth', 'apps/metering', 'apps/billing'],
};

/** `workspaces` and every library that they load, directly or not. */
function withLibraries(workspaces) {
  const found = new Set(workspaces);
  for (const workspace of found) {
    for (const file of globSync(`${workspace}/dist/**/*.js`)) {
      for (const [, name] of readFileSync(file, 'utf8').matchAll(/(?:require|import)\("@tollgate\/([a-z-]+)"\)/g)) {
        found.add(existsSync(`libs/${name}`) ? `libs/${name}` : `apps/${name}`);
      }
    }
  }
  return [...found].sort();
}

const out = process.argv[2];
for (const [target, apps] of Object.entries(TARGETS)) {
  const workspaces = withLibraries(apps);
  for (const workspace of workspaces) {
    for (const part of ['package.json', 'dist'])
      cpSync(join(workspace, part), join(out, target, 'app', workspace, part), { recursive: true });
  }
  mkdirSync(join(out, target), { recursive: true });
  writeFileSync(join(out, target, 'workspaces'), workspaces.map((workspace) => `--workspace=${workspace}`).join(' '));
}
