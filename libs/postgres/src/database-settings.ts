import { combine, Optional, Secret, Setting, Text } from '@tollgate/runtime';

const FORM = /^postgres(ql)?:\/\/[^\s]+$/;
const DatabaseUrl = () =>
  combine(
    Setting('PostgreSQL 16 or newer. Each service has its own schema. The standalone form then starts no server.'),
    Secret(),
    Text(FORM, 'a URL such as postgres://user:password@host:5432/database'),
  );

/** The settings of a service with a schema. */
export class DatabaseSettings {
  @DatabaseUrl() DATABASE_URL!: string;
}

/** The settings of a program that also works without a server. */
export class OptionalDatabaseSettings {
  @Optional() @DatabaseUrl() DATABASE_URL?: string;
}
