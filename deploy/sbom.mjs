// node deploy/sbom.mjs <image>: prints the bill of materials of an image of ours as CycloneDX JSON: its Debian
// packages, its npm packages (those of npm itself, too), and Node. It asks the image itself, so what is listed is what
// runs.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
const [image] = process.argv.slice(2);
if (!image) throw new Error('Name an image: node deploy/sbom.mjs <image>');
const docker = (...args) => execFileSync('docker', args, { encoding: 'utf8', maxBuffer: MAX_OUTPUT_BYTES });

/** Runs in the container. Its text is handed to Node there, so it uses nothing from outside. */
function inventory() {
  const { readdirSync, readFileSync } = process.getBuiltinModule('node:fs');
  const { execFileSync } = process.getBuiltinModule('node:child_process');
  const npm = [];
  const packageIn = (folder) => {
    try {
      const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
      if (name && version) npm.push({ name, version, license });
    } catch (error) {
      if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error;
    }
    modulesIn(folder);
  };
  // Links are workspaces, which are found where they are.
  const foldersIn = (folder) => {
    try {
      const entries = readdirSync(folder, { withFileTypes: true });
      return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    } catch (error) {
      if (error.code === 'ENOENT') return [];
      throw error;
    }
  };
  const modulesIn = (folder) => {
    const modules = `${folder}/node_modules`;
    for (const name of foldersIn(modules)) {
      if (!name.startsWith('@')) packageIn(`${modules}/${name}`);
      else for (const scoped of foldersIn(`${modules}/${name}`)) packageIn(`${modules}/${name}/${scoped}`);
    }
  };
  modulesIn('/app');
  for (const kind of ['apps', 'libs']) for (const name of foldersIn(`/app/${kind}`)) packageIn(`/app/${kind}/${name}`);
  modulesIn('/usr/local/lib');
  const format = '${Package}\\t${Version}\\t${Architecture}\\t${source:Package}\\n';
  const debian = execFileSync('dpkg-query', ['-W', '-f', format], { encoding: 'utf8' });
  const release = readFileSync('/etc/os-release', 'utf8');
  const value = (name) => new RegExp(`^${name}="?([^"\\n]*)`, 'm').exec(release)?.[1] ?? '';
  const system = { id: value('ID'), version: value('VERSION_ID') };
  process.stdout.write(JSON.stringify({ npm, debian, system, node: process.versions.node }));
}

const encoded = (text) => encodeURIComponent(text).replaceAll('%3A', ':');
const npmComponent = ({ name, version, license }) => ({
  type: 'library',
  name,
  version,
  purl: `pkg:npm/${name.startsWith('@') ? name.replace('@', '%40') : name}@${encoded(version)}`,
  // An SPDX expression, by the rules of npm.
  ...(typeof license === 'string' && license !== '' && { licenses: [{ license: { name: license } }] }),
});
const debianComponents = (listed, { id, version }) =>
  listed
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t'))
    .map(([name, packageVersion, architecture, source]) => ({
      type: 'library',
      name,
      version: packageVersion,
      purl:
        `pkg:deb/${id}/${encoded(name)}@${encoded(packageVersion)}?arch=${architecture}&distro=${id}-${version}` +
        (source && source !== name ? `&upstream=${encoded(source)}` : ''),
    }));

const [details] = JSON.parse(docker('image', 'inspect', image));
const found = JSON.parse(
  docker('run', '--rm', '--network', 'none', '--entrypoint', 'node', image, '-e', `(${inventory.toString()})()`),
);
const components = [
  { type: 'platform', name: 'node', version: found.node, purl: `pkg:generic/node@${found.node}` },
  ...debianComponents(found.debian, found.system),
  ...found.npm.map(npmComponent),
];
const unique = [...new Map(components.map((one) => [one.purl, { ...one, 'bom-ref': one.purl }])).values()];
unique.sort((a, b) => (a.purl < b.purl ? -1 : 1));

const labels = details.Config.Labels ?? {};
const digits = createHash('sha256').update(details.Id).digest('hex');
process.stdout.write(
  `${JSON.stringify(
    {
      bomFormat: 'CycloneDX',
      specVersion: '1.5',
      // The same image has the same bill.
      serialNumber: `urn:uuid:${digits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5')}`,
      version: 1,
      metadata: {
        ...(labels['org.opencontainers.image.created'] && { timestamp: labels['org.opencontainers.image.created'] }),
        component: {
          type: 'container',
          name: image.replace(/:[^/:]*$/, ''),
          version: labels['org.opencontainers.image.version'] ?? '',
          'bom-ref': details.Id,
          hashes: [{ alg: 'SHA-256', content: details.Id.replace(/^sha256:/, '') }],
        },
      },
      components: unique,
    },
    null,
    2,
  )}\n`,
);
