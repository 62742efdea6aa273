import { AUDIT_ACTIONS, OPERATOR_SCOPES } from '@tollgate/contracts';
import { type Command, Option } from 'commander';
import { exportAudit, listAudit, type AuditFilter } from './audit-commands';
import type { Context } from '../command/context';
import { group, leaf } from '../command/leaf';
import * as commands from './operator-commands';
import { scopesOf } from '../command/scopes';

/** Those who operate Tollgate: named tokens of the operator API. */
export function addOperatorCommands(program: Command, context: (options: object) => Context): void {
  const operator = group(
    program,
    'operator',
    'access to the operator API',
    'operator token create billing-job --scopes read,credit',
  );
  const token = group(
    operator,
    'token',
    'named tokens of the operator API (tgo_…); they work in place of the operator secret',
    'operator token create billing-job --scopes read,credit',
    'operator token list',
  );
  leaf(
    token,
    'create <name>',
    'create a token; it is shown only once',
    'operator token create billing-job --scopes read,credit',
    'operator token create anna --scopes read,tenants,keys --expires-at 2027-01-01',
  )
    .addOption(
      new Option('--scopes <list>', `comma-separated scopes: ${OPERATOR_SCOPES.join(', ')}`)
        .makeOptionMandatory()
        .argParser(scopesOf(OPERATOR_SCOPES)),
    )
    .option('--expires-at <time>', 'ISO 8601 date or timestamp, UTC (default: never)')
    .action((name: string, options: { scopes: string[]; expiresAt?: string }) => {
      const { scopes, expiresAt } = options;
      return commands.createOperatorToken(context(options), { name, scopes, ...(expiresAt && { expiresAt }) });
    });
  leaf(token, 'list', 'list the operator tokens, newest first', 'operator token list').action((options: object) =>
    commands.listOperatorTokens(context(options)),
  );
  leaf(
    program,
    'audit',
    'list the changes that were made, newest first: when, by whom, what, and from where (--json)',
    'audit --tenant ten_01k…',
    'audit --author anna --from 2026-11-01',
    'audit --csv > audit.csv',
  )
    .option('--tenant <tenant>', 'only changes of this tenant')
    .option('--author <author>', 'only changes by this operator token (name or id) or management token (id)')
    .addOption(new Option('--action <action>', 'only changes of this kind').choices(AUDIT_ACTIONS))
    .option('--target <target>', 'only changes of this key, token, ledger entry, month or invoice')
    .option('--request <id>', 'only the changes of this x-request-id')
    .option('--from <time>', 'ISO 8601 date or timestamp, UTC, inclusive')
    .option('--to <time>', 'ISO 8601 date or timestamp, UTC, exclusive')
    .addOption(new Option('--csv', 'print all of them as CSV').conflicts('json'))
    .action((filter: AuditFilter & { csv?: boolean }) =>
      filter.csv ? exportAudit(context(filter), filter) : listAudit(context(filter), filter),
    );
  leaf(token, 'revoke <token>', 'revoke a token; it takes effect at once', 'operator token revoke opr_01k…').action(
    (id: string, options: object) => commands.revokeOperatorToken(context(options), id),
  );
}
