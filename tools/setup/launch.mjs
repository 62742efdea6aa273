// Runs a program on Node 24 in place of this process: same terminal, same signals, same exit code.
import { spawn } from 'node:child_process';
import { node24 } from './prepare.mjs';

/**
 * @param {string[]} args for node
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv }} [options]
 * @returns {{ exited: Promise<number>, stop: () => void }}
 */
export function launch(args, { cwd, env } = {}) {
  // When this launcher is killed, the channel closes, so that the program can end too.
  const child = spawn(node24(), args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  const forward = (signal) => child.kill(signal);
  // On a terminal, Ctrl-C reaches the child directly as well. It ignores further signals.
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
