import { HardToGuess, hostText, Optional, Port, Secret, Text, WholeNumber } from '@tollgate/runtime';

export const OPERATOR_SECRET_FORM = /^[\x21-\x7e]{16,256}$/;
export const OPERATOR_SECRET_WHAT = '16 to 256 printable characters';
export const OPERATOR_SECRET_MIN_BITS = 80;
const HOST_NAMES = /^[A-Za-z0-9._-]{1,253}(,[A-Za-z0-9._-]{1,253}){0,99}$/;

/** Where both public surfaces are served. */
export class PublicSettings {
  @hostText() TOLLGATE_HOST: string = '127.0.0.1';
  @Port() TOLLGATE_PORT: number = 8080;
  /** What the limit of open files allows when it is not set. */
  @Optional() @WholeNumber(1, 1_000_000) TOLLGATE_MAX_CONNECTIONS?: number;
  /** For the bodies of all requests in hand. At least one of the largest. */
  @WholeNumber(10, 65_536) TOLLGATE_BODY_MEMORY_MIB: number = 256;
}

/** Where the operator API is served, and what its callers send. */
export class OperatorSettings {
  @hostText() TOLLGATE_OPERATOR_HOST: string = '127.0.0.1';
  @Port() TOLLGATE_OPERATOR_PORT: number = 8081;
  @Secret()
  @HardToGuess(OPERATOR_SECRET_MIN_BITS)
  @Text(OPERATOR_SECRET_FORM, OPERATOR_SECRET_WHAT)
  TOLLGATE_OPERATOR_SECRET!: string;
}

/** Under which names callers may reach the operator API, besides its address and localhost. */
export class OperatorHostsSettings {
  @Optional()
  @Text(HOST_NAMES, 'at most 100 names of hosts, separated by commas')
  TOLLGATE_OPERATOR_ALLOWED_HOSTS?: string;
}

export class SimulatorSettings {
  /** What the backend url "simulator:" of tollgate.yaml stands for. */
  @Optional() @Text(/^https?:\/\/\S+\/v1$/, 'a URL that ends in /v1') TOLLGATE_SIMULATOR_URL?: string;
}

export class LameDuckSettings {
  /** After a signal: how long it says that it is not ready and still serves, so that load balancers notice. */
  @WholeNumber(0, 300) TOLLGATE_LAME_DUCK_SECONDS: number = 5;
}
