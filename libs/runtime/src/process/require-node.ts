// Loaded first: on an older Node, the libraries fail with a stack trace.
const LEAST = [22, 19] as const;
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < LEAST[0] || (major === LEAST[0] && minor < LEAST[1])) {
  process.stderr.write(
    `Node ${process.versions.node} is too old: ${LEAST.join('.')} or newer is needed. ` +
      '`npm ci` brings one: run this with node_modules/.bin/node.\n',
  );
  process.exit(1);
}
