import { Optional, Secret, Text } from '@tollgate/runtime';

const FORM = /^postgres(ql)?:\/\/[^\s]+$/;
const databaseUrl = () => Text(FORM, 'a URL such as postgres://user:password@host:5432/database');

/** Of a service with a schema. */
export class DatabaseSettings {
  @Secret() @databaseUrl() DATABASE_URL!: string;
}

/** Of a program that can do without a server. */
export class OptionalDatabaseSettings {
  @Secret() @Optional() @databaseUrl() DATABASE_URL?: string;
}
