import type { Command } from 'commander';
import { group, leaf } from '../command/leaf';
import { Output } from '../command/output';

/**
 * The commands for Redis. Their modules load only for them, because loading takes longer than the other commands run.
 */
export function addRedisCommands(program: Command, env: NodeJS.ProcessEnv): void {
  const load = async () => (await import('./redis-tools.js')).redisTools;

  const redis = group(
    program,
    'redis',
    "the distributed form's Redis: the rights of its users, and its functions",
    'redis rights',
    'redis load --keep',
  );
  leaf(
    redis,
    'rights [user]',
    'print the users and rights that the services need, as lines of an ACL file; needs no server',
    'redis rights',
    'redis rights gateway',
  ).action(async (user: string | undefined, options: object) => {
    (await load()).showRights(user, new Output('json' in options));
  });
  leaf(
    redis,
    'load',
    'load the functions that the services call (REDIS_URL); safe to repeat',
    'redis load',
    'redis load --keep',
  )
    .option(
      '--keep',
      'keep running, and load them again whenever Redis lacks them: after it was emptied, on a new shard',
    )
    .option('--ready-file <file>', 'with --keep: write this file when they are loaded')
    .action(async (options: { keep?: true; readyFile?: string }) => {
      const { findRedis, keepFunctions, loadFunctions } = await load();
      const url = findRedis(env);
      if (options.keep) await keepFunctions(url, options.readyFile);
      else await loadFunctions(url, new Output('json' in options));
    });
}
