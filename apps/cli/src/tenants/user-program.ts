import { type Command, Option } from 'commander';
import type { Context } from '../command/context';
import { group, leaf } from '../command/leaf';
import { inviteOperator, removeOperator, resetPassword } from './user-commands';

/** People who use the console. */
export function addUserCommands(program: Command, context: (options: object) => Context): void {
  const user = group(program, 'user', 'people who use the console', 'user invite --operator');
  leaf(
    user,
    'invite',
    'make a link for a new operator of the console; it works once, for ten minutes',
    'user invite --operator',
    'user invite --operator --tenant ten_01k…',
  )
    .addOption(new Option('--operator', 'an operator, who may do everything').makeOptionMandatory())
    .option('--tenant <tenant>', 'also make the operator owner of this tenant')
    .action((options: { tenant?: string }) => inviteOperator(context(options), options.tenant));
  leaf(
    user,
    'remove-operator <email>',
    "revoke a person's operator role in the console; the account stays",
    'user remove-operator anna@example.com',
  ).action((email: string, options: object) => removeOperator(context(options), email));
  leaf(
    user,
    'reset',
    'make a link with which a person sets a new password; it works once, for an hour',
    'user reset --email anna@example.com',
  )
    .requiredOption('--email <email>', 'the e-mail address of the person')
    .action((options: { email: string }) => resetPassword(context(options), options.email));
}
