import { type ChecksItself, combine, Optional, problemsOfTls, Satisfies, Secret, Setting } from '@tollgate/runtime';
import { readFileSync } from 'node:fs';

const FORM = /^postgres(ql)?:\/\/\S+$/;
const WHAT = 'a URL such as postgres://user:password@host:5432/database (in the password / is %2F, # %23, ? %3F)';
/** pg ignores an unknown name, and would connect without TLS. */
const TLS_OPTIONS: Readonly<Record<string, RegExp>> = {
  sslmode: /^(disable|prefer|require|verify-ca|verify-full|no-verify)$/,
  ssl: /^(true|1|0|no-verify)$/,
  sslnegotiation: /^(postgres|direct)$/,
  ...{ sslrootcert: /./, sslcert: /./, sslkey: /./ },
};
const DatabaseUrl = () =>
  combine(
    Setting('PostgreSQL 16 or newer. Each service has its own schema. The standalone form then starts no server.'),
    Secret(),
    Satisfies(isDatabaseUrl, WHAT),
  );

/** The settings of a service with a schema. */
export class DatabaseSettings implements ChecksItself {
  @DatabaseUrl() DATABASE_URL!: string;

  problems(): string[] {
    return tlsProblems(this.DATABASE_URL);
  }
}

/** The settings of a program that also works without a server. */
export class OptionalDatabaseSettings implements ChecksItself {
  @Optional() @DatabaseUrl() DATABASE_URL?: string;

  problems(): string[] {
    return tlsProblems(this.DATABASE_URL);
  }
}

/** Without a host it names a socket. A special character in the password ends the host; the rest looks like a path. */
function isDatabaseUrl(text: string): boolean {
  const url = text.replace('@/', '@socket/');
  if (!FORM.test(text) || !URL.canParse(url)) return false;
  const { pathname, search, hash } = new URL(url);
  return !pathname.includes('@') && !search.includes('@') && hash === '';
}

function tlsProblems(url = ''): string[] {
  const options = [...new URLSearchParams(url.split('?', 2)[1])].filter(([name]) => /ssl|tls/i.test(name));
  const unknown = options.find(([name, value]) => !TLS_OPTIONS[name]?.test(value));
  if (unknown)
    return [
      `DATABASE_URL: "${unknown[0]}" is no option of TLS, or has an unknown value. The options are sslmode (disable, ` +
        'require, verify-full, no-verify), sslrootcert, sslcert and sslkey',
    ];
  const authorities = options.filter(([name]) => name === 'sslrootcert').flatMap(([, file]) => readable(file));
  return authorities
    .flatMap((ca) => problemsOfTls({ ca }))
    .map(({ message }) => `DATABASE_URL: the file of sslrootcert ${message}`);
}

/** The first connection reports a file that cannot be read. */
function readable(file: string): string[] {
  try {
    return [readFileSync(file, 'utf8')];
  } catch {
    return [];
  }
}
