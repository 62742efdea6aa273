import { SCOPES } from '@tollgate/contracts';
import { type Command, Option } from 'commander';
import type { Context } from '../command/context';
import { group, leaf } from '../command/leaf';
import { DEFAULT_NAME, pick } from '../command/options';
import { scopesOf } from '../command/scopes';
import * as commands from './key-commands';

/** Management tokens of a tenant. */
export function addTokenCommands(program: Command, context: (options: object) => Context): void {
  const token = group(
    program,
    'token',
    'management tokens (fma_…)',
    'token create ten_01k… ops',
    'token list ten_01k…',
  );
  leaf(
    token,
    'create <tenant> [name]',
    'create a token; it is shown only once',
    'token create ten_01k… ops --scopes usage:read,billing:read',
  )
    .addOption(
      new Option('--scopes <list>', 'comma-separated scopes')
        .default([...SCOPES], SCOPES.join(','))
        .argParser(scopesOf(SCOPES)),
    )
    .option('--expires-at <time>', 'ISO 8601 date or timestamp, UTC (default: never)')
    .action((id: string, name: string | undefined, options: { scopes: string[]; expiresAt?: string }) =>
      commands.createToken(context(options), id, {
        name: name ?? DEFAULT_NAME,
        scopes: options.scopes,
        ...pick(options, 'expiresAt'),
      }),
    );
  leaf(token, 'list <tenant>', 'list the tokens of a tenant, newest first', 'token list ten_01k…').action(
    (id: string, options: object) => commands.listTokens(context(options), id),
  );
  leaf(
    token,
    'revoke <tenant> <token>',
    'revoke a token; it takes effect within a second',
    'token revoke ten_01k… tok_01k…',
  ).action((id: string, tokenId: string, options: object) => commands.revoke(context(options), 'token', id, tokenId));
}
