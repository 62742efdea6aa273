import { combine, Optional, Satisfies, Secret, Setting } from '@tollgate/runtime';

const FORM = /^postgres(ql)?:\/\/\S+$/;
const WHAT = 'a URL such as postgres://user:password@host:5432/database (in the password / is %2F, # %23, ? %3F)';
const DatabaseUrl = () =>
  combine(
    Setting('PostgreSQL 16 or newer. Each service has its own schema. The standalone form then starts no server.'),
    Secret(),
    Satisfies(isDatabaseUrl, WHAT),
  );

/** The settings of a service with a schema. */
export class DatabaseSettings {
  @DatabaseUrl() DATABASE_URL!: string;
}

/** The settings of a program that also works without a server. */
export class OptionalDatabaseSettings {
  @Optional() @DatabaseUrl() DATABASE_URL?: string;
}

/** Without a host it names a socket. A special character in the password ends the host; the rest looks like a path. */
function isDatabaseUrl(text: string): boolean {
  const url = text.replace('@/', '@socket/');
  if (!FORM.test(text) || !URL.canParse(url)) return false;
  const { pathname, hash } = new URL(url);
  return !pathname.includes('@') && hash === '';
}
