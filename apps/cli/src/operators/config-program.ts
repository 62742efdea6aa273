import type { Command } from 'commander';
import { group, leaf } from '../command/leaf';
import { Output } from '../command/output';
import type { CheckOptions } from './config-check';

/** The check of a configuration file. `fail` is called for one with problems. */
export function addConfigCommand(program: Command, env: NodeJS.ProcessEnv, fail: () => void): void {
  const config = group(program, 'config', 'the configuration file', 'config check');
  leaf(
    config,
    'check [file]',
    'check a configuration file, and ask a running Tollgate whether it would accept it',
    'config check',
    'config check /etc/tollgate/tollgate.yaml',
    'config check tollgate.yaml --allow-missing-env',
  )
    .option('--allow-missing-env', 'ignore secrets that are missing on this machine')
    .option('--no-server', 'do not ask a running Tollgate')
    .action(async (file: string | undefined, options: CheckOptions & { json?: boolean }) => {
      // Loaded for this command alone, because loading takes longer than the other commands run.
      const { checkConfig } = await import('./config-check.js');
      const path = file ?? (env['TOLLGATE_CONFIG'] || 'tollgate.yaml');
      const how = { ...options, isDefault: file === undefined };
      if (!(await checkConfig(path, env, new Output('json' in options), how))) fail();
    });
}
