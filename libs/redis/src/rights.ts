import { hash } from 'node:crypto';

/** Keys that the same commands use together, in one call. */
interface Grant {
  /** The functions, and anything else, that need it. */
  for: string;
  /** Patterns of Redis's ACL. */
  keys: readonly string[];
  commands: readonly string[];
}

export interface Rights {
  what: string;
  /** Pub/sub. */
  channels?: readonly string[];
  /** Commands that use no key. */
  commands: readonly string[];
  grants: readonly Grant[];
}

const tenant = ['credit', 'keys', 'pending', 'settled', 'unconfirmed'].map((name) => `tga:{*}:${name}`);
const pending = ['tga:{*}:pending'];
const claims = ['claims', 'claim_times', 'answers', 'answer_times'].map((name) => `tga:{*}:${name}`);
const registry = (...names: string[]) => names.map((name) => `tga:{registry*}:${name}`);
const credentials = (...names: string[]) => names.map((name) => `tgc:{credentials}:${name}`);

/**
 * Every connection runs these commands. INFO reports the run id, and whether the server is still loading. The others
 * are for a cluster.
 */
const CONNECTION = ['ping', 'info', 'client|setname', 'cluster|slots', 'cluster|info', 'asking'];
/** `exists`: probes whether a silent shard answers again. */
const CALL = ['fcall', 'exists'];
/** Probes whether the store can be written. */
const PROBE: Grant = {
  for: '/readyz: a test write',
  keys: ['tga:{probe*}:write'],
  commands: ['set', 'exists'],
};

/**
 * The rights of each user in Redis. users.acl, `tollgate redis rights` and docs/rights.md are made from this table. A
 * function runs with the rights of its caller, so the commands inside it are listed too. Each command applies only to
 * the keys of its own grant.
 */
export const REDIS_RIGHTS = {
  gateway: {
    what: 'makes and settles holds; reads credentials',
    channels: ['tgc:changed'],
    commands: [...CONNECTION, 'time', 'wait', 'subscribe'],
    grants: [
      {
        for:
          'admit, look, expected_ends, recall, recall_written, claim_answers, extend, progress, settle, void, ' +
          'apply_balance_updates, begin_restore, restore',
        keys: [...tenant, ...claims],
        commands: [
          ...[...CALL, 'hmget', 'hget', 'hset', 'hsetnx', 'hdel', 'hexists', 'zadd', 'zrem'],
          ...['hstrlen', 'hincrby', 'zcard', 'zrange', 'pexpire'],
        ],
      },
      { for: 'expected_ends: the running requests of a tenant', keys: pending, commands: ['hlen', 'hvals'] },
      { for: 'take_call', keys: ['tga:{*}:calls'], commands: [...CALL, 'hget', 'hset', 'pexpire'] },
      { for: 'the lists of tenants', keys: registry('tenants', 'active'), commands: ['zadd', 'exists'] },
      PROBE,
      {
        for: 'read, changes',
        keys: credentials('records', 'changes', 'meta', 'ends'),
        commands: [...CALL, 'hmget', 'hexists', 'zrangebyscore'],
      },
      { for: 'not_complete: requests a refill by auth', keys: credentials('meta'), commands: ['hget', 'hdel'] },
    ],
  },
  auth: {
    what: 'writes credentials',
    channels: ['tgc:changed'],
    commands: [...CONNECTION, 'time', 'subscribe', 'publish'],
    grants: [
      {
        for: 'put, forget, changes, begin_filling, end_filling, not_complete',
        keys: credentials('records', 'changes', 'meta', 'ends'),
        commands: [...CALL, 'hmget', 'hget', 'hset', 'hsetnx', 'hdel', 'hexists', 'zadd', 'zrem', 'zrangebyscore'],
      },
    ],
  },
  metering: {
    what: 'ends expired holds',
    commands: [...CONNECTION, 'time'],
    grants: [
      {
        for: 'sweep',
        keys: [...tenant, 'tga:{*}:claims'],
        commands: [...CALL, 'hmget', 'hget', 'hset', 'hdel', 'hgetall', 'hlen', 'zadd', 'zcard', 'zrangebyscore'],
      },
      {
        for: 'the list of tenants to sweep, forget_idle',
        keys: registry('active'),
        commands: [...CALL, 'zrange', 'zscore', 'zrem'],
      },
      PROBE,
    ],
  },
  billing: {
    what: 'sets credit; reads holds for reconcile',
    commands: [...CONNECTION, 'time', 'wait'],
    grants: [
      {
        for: 'apply_balance_updates, begin_restore, restore, withdraw, repair, snapshot, holds',
        keys: tenant,
        commands: [
          ...[
            ...CALL,
            'hmget',
            'hget',
            'hset',
            'hsetnx',
            'hdel',
            'hexists',
            'hgetall',
            'hvals',
            'zadd',
            'zrange',
            'zrem',
          ],
          ...['type', 'del'],
        ],
      },
      {
        for: 'the lists of tenants',
        keys: registry('tenants', 'active'),
        commands: ['zadd', 'zrangebylex', 'exists'],
      },
      PROBE,
    ],
  },
  functions: {
    what: 'loads the function libraries',
    commands: [...CONNECTION, 'function|load', 'function|list'],
    grants: [],
  },
} as const satisfies Record<string, Rights>;

export type RedisUser = keyof typeof REDIS_RIGHTS;
export const REDIS_USERS = Object.keys(REDIS_RIGHTS) as RedisUser[];
/** The rules of the administrator. */
const ADMIN_RULES = '~* &* +@all';
/**
 * Nobody can sign in as `default`, which is off. Redis itself replays its append-only file with these rights. Without
 * them it would omit every transaction, and thus every write of a function, and report it only in ACL LOG.
 */
const DEFAULT_RULES = '~* &* +@all';
/**
 * For the container's health check, which therefore needs no password: PING reports whether Redis serves or still
 * loads.
 */
const HEALTH_RULES = 'nopass +ping';

/** The rules of a user, in the form of ACL SETUSER. */
export function rulesOf(user: RedisUser): string {
  const { channels = [], commands, grants }: Rights = REDIS_RIGHTS[user];
  const allowed = (names: readonly string[]) => names.map((name) => `+${name}`);
  return [
    '-@all',
    ...channels.map((channel) => `&${channel}`),
    ...allowed(commands),
    ...grants.map((grant) => `(${[...grant.keys.map((key) => `~${key}`), ...allowed(grant.commands)].join(' ')})`),
  ].join(' ');
}

/** A line of an ACL file. `password`: a rule such as `>password` or `#sha256`. */
export const aclLine = (user: RedisUser, password: string): string => `user ${user} on ${password} ${rulesOf(user)}`;

/**
 * The whole ACL file. Nobody gets in without a user's password, except to PING. It contains only hashes of passwords.
 */
export function aclFile(passwords: Record<RedisUser | 'admin', string>): string {
  const hashed = (user: RedisUser | 'admin') => `#${hash('sha256', passwords[user], 'hex')}`;
  return [
    `user default off resetpass ${DEFAULT_RULES}`,
    ...REDIS_USERS.map((user) => aclLine(user, hashed(user))),
    `user health on ${HEALTH_RULES}`,
    `user admin on ${hashed('admin')} ${ADMIN_RULES}`,
  ]
    .map((line) => `${line}\n`)
    .join('');
}
