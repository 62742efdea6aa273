// Runs a program on Node 24 as if it were us: same terminal, same signals, same exit code.
import { spawn } from 'node:child_process';
import { node24 } from './prepare.mjs';

/**
 * @param {string[]} args for node
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv }} [options]
 * @returns {{ exited: Promise<number>, stop: () => void }}
 */
export function launch(args, { cwd, env } = {}) {
  // The channel tells the program when this launcher was killed, so that it does not live on unseen.
  const child = spawn(node24(), args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  const forward = (signal) => child.kill(signal);
  // On a terminal Ctrl-C reaches the child by itself as well; it takes a repeat for what it is.
  process.on('SIGINT', forward);
  process.on('SIGTERM', forward);
  process.on('SIGHUP', forward);
  return {
    stop: () => child.kill('SIGTERM'),
    exited: new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('exit', (code, signal) => resolve(code ?? (signal === 'SIGINT' ? 130 : signal === 'SIGTERM' ? 143 : 1)));
    }),
  };
}
