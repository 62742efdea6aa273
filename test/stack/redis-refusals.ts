import type { RedisUser } from '@tollgate/redis';

/** Commands that Redis must refuse to each user. */
export const TENANT_KEY = 'tga:{ten_x}:credit';
const CREDENTIAL_KEYS = ['tgc:{credentials}:records', 'tgc:{credentials}:changes', 'tgc:{credentials}:meta'];
/** Refused to every user but the admin. */
export const NOBODY = [
  'CONFIG GET requirepass',
  'CONFIG SET appendonly no',
  'FLUSHALL',
  'FLUSHDB',
  'KEYS *',
  'SCAN 0',
  'RANDOMKEY',
  'DEBUG SLEEP 0',
  'ACL LIST',
  'ACL SETUSER gateway +@all',
  'MONITOR',
  'SCRIPT FLUSH',
  'EVAL return(1) 0',
  'FUNCTION FLUSH',
  'FUNCTION DELETE tollgate_admission_v1_x',
  'FUNCTION DUMP',
  'FUNCTION RESTORE x',
  'SHUTDOWN NOSAVE',
  'BGREWRITEAOF',
  'SAVE',
  'REPLICAOF 127.0.0.1 1',
  'CLIENT LIST',
  'CLIENT KILL TYPE normal',
  'SLOWLOG GET',
  'MODULE LIST',
  'MIGRATE 127.0.0.1 1 x 0 1',
  'SWAPDB 0 1',
  'PSUBSCRIBE *',
  'SUBSCRIBE other',
  'GET other',
  'SET other 1',
  'SET tga:{ten_x}:credit 1',
  `RENAME ${TENANT_KEY} tga:{ten_y}:credit`,
  `DUMP ${TENANT_KEY}`,
  `EXPIRE ${TENANT_KEY} 1`,
];
/** Billing repairs. */
const REMOVE_CREDIT = `DEL ${TENANT_KEY}`;
const WRITE_CREDIT = [REMOVE_CREDIT, `HSET ${TENANT_KEY} balance 1`, `FCALL any 1 ${TENANT_KEY}`];
const READ_CREDENTIALS = [`HMGET ${CREDENTIAL_KEYS[0]} x`, `ZRANGEBYSCORE ${CREDENTIAL_KEYS[1]} 0 1`];
const WRITE_CREDENTIALS = [
  `HSET ${CREDENTIAL_KEYS[0]} x 1`,
  `HDEL ${CREDENTIAL_KEYS[0]} x`,
  `ZADD ${CREDENTIAL_KEYS[1]} 1 x`,
  `HSET ${CREDENTIAL_KEYS[2]} complete 1`,
  `HSETNX ${CREDENTIAL_KEYS[2]} complete 1`,
  'PUBLISH tgc:changed x',
];
const LOAD = ['FUNCTION LOAD #!lua', 'FUNCTION LOAD REPLACE #!lua', 'FUNCTION LIST'];
export const OWN: Record<RedisUser | 'health', string[]> = {
  gateway: [
    REMOVE_CREDIT,
    ...WRITE_CREDENTIALS,
    ...LOAD,
    `HGETALL ${CREDENTIAL_KEYS[0]}`,
    'ZRANGE tga:{registry0}:tenants 0 -1',
  ],
  auth: [...WRITE_CREDIT, ...LOAD, 'ZADD tga:{registry0}:tenants 0 x', 'SET tga:{probe0}:write 1'],
  metering: [
    REMOVE_CREDIT,
    ...READ_CREDENTIALS,
    ...WRITE_CREDENTIALS,
    ...LOAD,
    'ZADD tga:{registry0}:active 1 x',
    'SUBSCRIBE tgc:changed',
  ],
  billing: [
    ...READ_CREDENTIALS,
    ...WRITE_CREDENTIALS,
    ...LOAD,
    'ZRANGEBYSCORE tga:{ten_x}:unconfirmed 0 1',
    'SUBSCRIBE tgc:changed',
  ],
  functions: [...WRITE_CREDIT, ...READ_CREDENTIALS, ...WRITE_CREDENTIALS, `HGET ${TENANT_KEY} balance`],
  health: [...WRITE_CREDIT, ...READ_CREDENTIALS, ...WRITE_CREDENTIALS, ...LOAD, 'INFO', 'CLIENT SETNAME x'],
};
