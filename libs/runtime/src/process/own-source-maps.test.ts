import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

const FILE = join(__dirname, '../../dist/process/own-source-maps.js');

/** What Node maps after the import, in a process with these flags. */
function mappedWith(...flags: string[]): unknown {
  const code = `require(${JSON.stringify(FILE)}); JSON.stringify(require('node:module').getSourceMapsSupport())`;
  return JSON.parse(execFileSync(process.execPath, [...flags, '--print', code], { encoding: 'utf8' }));
}

it('stack traces are mapped to our sources, and no maps of libraries are read', () => {
  expect(mappedWith('--enable-source-maps')).toMatchObject({ enabled: true, nodeModules: false });
});

it('stack traces are mapped only in a process that asks for it', () => {
  expect(mappedWith()).toMatchObject({ enabled: false });
});
