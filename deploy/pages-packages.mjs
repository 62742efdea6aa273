// For the Dockerfile: leaves in the manifests only what the pages of the console are built with, its development
// dependencies. `npm install` then takes these at the versions of the lockfile, and none of the others.
import { readFileSync, writeFileSync } from 'node:fs';

const APP = 'apps/console';
const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
const write = (file, manifest) => writeFileSync(file, JSON.stringify(manifest));

const { name, version, overrides } = read('package.json');
write('package.json', { name, version, private: true, workspaces: [APP], overrides });
const app = read(`${APP}/package.json`);
write(`${APP}/package.json`, {
  name: app.name,
  version: app.version,
  private: true,
  devDependencies: app.devDependencies,
});
