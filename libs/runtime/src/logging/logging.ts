import pino, { type Logger } from 'pino';

export type { Logger } from 'pino';

/**
 * Header and body fields that may contain a secret or a prompt. They are never logged, whatever logs an object that has
 * them.
 */
const SECRET_PATHS = [
  'authorization',
  'headers.authorization',
  'req.headers.authorization',
  '*.headers.authorization',
  'apiKey',
  '*.apiKey',
  'secret',
  '*.secret',
  'messages',
  'prompt',
  'input',
];

/**
 * What an error of PostgreSQL has of the rows: names, addresses and hashes. `driverError` repeats it. The message, the
 * statement, the constraint and the stack stay.
 */
const ROW_PATHS = ['parameters', 'detail', 'driverError'].flatMap((field) => [
  `err.${field}`,
  `err.aggregateErrors[*].${field}`,
]);

/** A key or a token anywhere in a line: in a message, an error, or a client's URL. */
const CREDENTIAL = /(sk-svc-|fma_|tgo_)[0-9A-Za-z]{16,}/g;

const HIDING = {
  redact: { paths: [...SECRET_PATHS, ...ROW_PATHS], censor: '[hidden]' },
  hooks: { streamWrite: (line: string) => line.replace(CREDENTIAL, '$1[hidden]') },
};

let root: Logger = pino({ level: 'info', ...HIDING }, pino.destination({ fd: 2, sync: true }));

/**
 * Sets up logging once, before anything logs: pretty on a terminal, JSON lines elsewhere. Always to stderr, because
 * stdout is for the command's own output.
 */
export function configureLogging({ level, pretty }: { level: string; pretty: boolean }): void {
  const options = { level, ...HIDING };
  root = pretty
    ? pino({
        ...options,
        transport: {
          target: 'pino-pretty',
          options: { destination: 2, translateTime: 'SYS:HH:MM:ss', ignore: 'pid,hostname' },
        },
      })
    : pino(options, pino.destination({ fd: 2, sync: true }));
}

/** A logger for one part of the program; `component` is in each line. Create it where it is used, not at import. */
export function logger(component: string): Logger {
  return root.child({ component });
}
