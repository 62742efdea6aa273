// The environment variables that `npm run stack` reads: for settings.mjs, and for docs/operating/settings.md.

const MAX_PORT = 65_535;

/**
 * The memory limit of each container in MiB, as in docker-compose.yml, and the share of it for data or for the heap of
 * JavaScript. The rest is for connections, buffers and code, for the workers of a gateway, and for rewrites in Redis.
 */
export const MEMORY = {
  POSTGRES: { mib: 4_096 },
  REDIS: { mib: 2_048, part: 'DATA', share: 1 / 2 },
  KAFKA: { mib: 1_536 },
  GATEWAY: { mib: 4_096, part: 'HEAP', share: 1 / 4 },
  AUTH: { mib: 512, part: 'HEAP', share: 5 / 8 },
  METERING: { mib: 512, part: 'HEAP', share: 5 / 8 },
  BILLING: { mib: 512, part: 'HEAP', share: 5 / 8 },
  CONSOLE: { mib: 512, part: 'HEAP', share: 5 / 8 },
  SIMULATOR: { mib: 512, part: 'HEAP', share: 5 / 8 },
  HAPROXY: { mib: 512 },
};
export const MIN_MEMORY_MIB = 128;
export const MAX_MEMORY_MIB = 999_999;

/**
 * Variables that a service or the standalone form reads as well. Their settings classes describe them.
 * `default`: the value if nothing is set. `byDefault`: the text of the table instead. `values`: the allowed values.
 * `max`: the largest whole number, as in the class, so that a larger one is refused before anything is started. `min`:
 * the smallest one, if it is not 0.
 * @typedef {{ default?: string | number, byDefault?: string, values?: readonly string[] }} Other
 * @typedef {Other & { min?: number, max?: number }} Shared
 * @type {Record<string, Shared>}
 */
export const SHARED_VARIABLES = {
  TOLLGATE_PORT: { default: 8080, max: MAX_PORT },
  TOLLGATE_OPERATOR_PORT: { byDefault: '`TOLLGATE_PORT` + 1', max: MAX_PORT },
  TOLLGATE_DRAIN_SECONDS: { default: 30, max: 3_600 },
  TOLLGATE_LAME_DUCK_SECONDS: { default: 5, max: 300 },
  TOLLGATE_INVOICE_CLOSE_MINUTES: { default: 60, max: 28_800 },
  TOLLGATE_USAGE_KEPT_MONTHS: { default: 13, min: 3, max: 1_200 },
  TOLLGATE_LOG_LEVEL: { default: 'info', values: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] },
  TOLLGATE_DEMO: { default: 'true', values: ['true', 'false'] },
  TOLLGATE_CONFIG: { default: 'tollgate.yaml' },
  TOLLGATE_CONFIG_SECRETS_FILE: {},
  TOLLGATE_DATA_DIR: { default: '.tollgate' },
  TOLLGATE_OPERATOR_SECRET: { byDefault: 'made on the first start' },
  TOLLGATE_FORMER_OPERATOR_SECRET: {},
  TOLLGATE_OPERATOR_ALLOWED_HOSTS: {},
  TOLLGATE_METRICS_TOKEN: { byDefault: 'made on the first start' },
  TOLLGATE_TRACES_URL: {},
  TOLLGATE_TRACES_PERCENT: { default: 1, max: 100 },
  TOLLGATE_TRACES_SLOW_MS: { default: 30_000, min: 1, max: 3_600_000 },
  TOLLGATE_MAX_BODY_MIB: { default: 10, min: 1, max: 64 },
  TOLLGATE_BODY_MEMORY_MIB: { default: 256, min: 10, max: 65_536 },
  TOLLGATE_IDEMPOTENCY_ANSWER_KIB: { default: 1_024, min: 1, max: 16_384 },
  TOLLGATE_IDEMPOTENCY_TENANT_MIB: { default: 16, min: 1, max: 65_536 },
  TOLLGATE_CONSOLE_URL: { byDefault: '`http://localhost:<its port>`' },
  TOLLGATE_CONSOLE_SECRET: { byDefault: 'made on the first start' },
  TOLLGATE_OIDC_ISSUER: {},
  TOLLGATE_OIDC_CLIENT_ID: {},
  TOLLGATE_OIDC_CLIENT_SECRET: {},
  TOLLGATE_OIDC_DOMAINS: { byDefault: 'only people with an account' },
  TOLLGATE_OIDC_ROLES: { byDefault: 'only the roles of invitations' },
  TOLLGATE_OIDC_ROLES_CLAIM: { default: 'groups' },
  TOLLGATE_SMTP_URL: { byDefault: 'links are only shown' },
  TOLLGATE_SMTP_FROM: { default: 'tollgate@localhost' },
};

/**
 * Variables that nothing else reads.
 * @typedef {{ description: string, default?: string, byDefault?: string, values?: string[], form?: string }} Own
 * @type {Record<string, Own>}
 */
export const OWN_VARIABLES = {
  COMPOSE_PROJECT_NAME: {
    description: 'Distinguishes the containers and the data of several stacks on one machine.',
    default: 'tollgate',
    form: 'lower-case letters, digits, - and _',
  },
  COMPOSE_FILE: {
    description: 'The compose file that is used instead of the shipped one.',
    byDefault: '`docker-compose.yml`',
    form: 'the path of a compose file',
  },
  NODE_EXTRA_CA_CERTS: {
    description: 'Authorities that the image builds trust besides the system’s, such as that of a proxy.',
    form: 'the path of a PEM file',
  },
  TOLLGATE_TAG: {
    description: 'Tag of the images that are built. Set it where several checkouts share an engine.',
    default: 'latest',
    form: 'an image tag',
  },
  TOLLGATE_IMAGES: {
    description: '`local` builds the servers from Debian packages (on Debian, as root), where no image can be pulled.',
    default: 'official',
    values: ['official', 'local'],
  },
  'TOLLGATE_<SERVER>_IMAGE': {
    description: 'Another image of a server: `POSTGRES`, `REDIS`, `KAFKA`, `HAPROXY` or `NODE`.',
    byDefault: 'in `deploy/images/official.env`',
    form: 'an image',
  },
  'TOLLGATE_<CONTAINER>_MEMORY_MIB': {
    description: 'MiB of memory of the containers of a kind, such as `GATEWAY` or `REDIS`: see the notes.',
    byDefault: 'see the notes',
    form: `a whole number from ${MIN_MEMORY_MIB} to ${MAX_MEMORY_MIB}`,
  },
  TOLLGATE_STACK_TLS: {
    description: 'Whether the services reach PostgreSQL, Redis and Kafka by TLS alone.',
    default: 'false',
    values: ['true', 'false'],
  },
  TOLLGATE_TCP_RETRIES: {
    description: 'Retries of an unacknowledged packet until its connection ends: 3 take 3 s, 5 take 13 s.',
    default: '3',
    // From 3 s to 15 minutes (Linux's own).
    values: Array.from({ length: 13 }, (_, index) => String(index + 3)),
    form: 'a whole number from 3 to 15',
  },
};

const ALL = { ...SHARED_VARIABLES, ...OWN_VARIABLES };

/** The default of a variable, or undefined, and its allowed values if they are few. */
export const declared = (name) => ALL[name];
