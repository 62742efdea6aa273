// Of commit 351276700c9b45dbbf3b7c464f61b8189a42caa1. Kept by tools/checks/former-contracts.mjs.
Object.defineProperty(exports, Symbol.toStringTag, { value: 'Module' });
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
Buffer.alloc(4096);
Buffer.alloc(16);
function isId(prefix, value) {
  return (
    typeof value === 'string' &&
    value.startsWith(`${prefix}_`) &&
    /^[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(value.slice(prefix.length + 1))
  );
}
const ID_CHARS = 26;
Buffer.from(ALPHABET, 'latin1');
Buffer.alloc(ID_CHARS);
const MAX_TOKEN_COUNT = 2 ** 31 - 1;
const MAX_NANOS$1 = 2n ** 63n - 1n;
const MAX_PRICE = 10n ** 15n;
const MAX_NAME_CHARS = 256;
const MAX_CLOCK_AHEAD_MS = 864e5;
const KINDS = new Set(['chat', 'completion', 'embedding']);
const OUTCOMES = new Set(['complete', 'client_closed', 'upstream_error', 'credit_ended', 'expired']);
const TIME = /^2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const NAME = /^[^\p{Cc}\p{Cs}]+$/u;
const DIGITS = /^\d{1,19}$/;
function validateUsageEvent(value, nowMs = Date.now()) {
  if (!isObject(value)) return 'not an object';
  const event = value;
  if (!isId('req', event.id)) return 'id: not a request id';
  if (!isId('ten', event.tenantId)) return 'tenantId: not a tenant id';
  if (!isId('key', event.keyId)) return 'keyId: not a key id';
  if (!isName(event.model)) return 'model: not a name';
  if (!KINDS.has(event.kind)) return 'kind: unknown';
  if (!OUTCOMES.has(event.outcome)) return 'outcome: unknown';
  if (typeof event.stream !== 'boolean') return 'stream: not a boolean';
  if (typeof event.estimated !== 'boolean') return 'estimated: not a boolean';
  return (
    validateTokens(event) ??
    validatePrice(event.price) ??
    validateMoney(event) ??
    validateBudgets(event.defaultBudgets) ??
    validateTimes(event, nowMs)
  );
}
function validateTokens(event) {
  for (const name of ['promptTokens', 'cachedTokens', 'completionTokens']) {
    const count = event[name];
    if (!Number.isInteger(count) || count < 0 || count > MAX_TOKEN_COUNT) return `${name}: not a token count`;
  }
  return event['cachedTokens'] > event['promptTokens'] ? 'cachedTokens: more than promptTokens' : null;
}
function validatePrice(price) {
  if (!isObject(price)) return 'price: not an object';
  if (!isName(price['version'])) return 'price.version: not a name';
  for (const name of ['inputFemtos', 'cachedInputFemtos', 'outputFemtos', 'requestNanos'])
    if (!isAmount(price[name], MAX_PRICE)) return `price.${name}: not a price`;
  return null;
}
function validateMoney(event) {
  if (!isAmount(event['costNanos'], MAX_NANOS$1)) return 'costNanos: not an amount';
  if (!isAmount(event['overrunNanos'], MAX_NANOS$1)) return 'overrunNanos: not an amount';
  return null;
}
function validateBudgets(budgets) {
  if (budgets === void 0) return null;
  if (!isObject(budgets)) return 'defaultBudgets: not an object';
  for (const name of ['tenantCents', 'keyCents']) {
    const cents = budgets[name];
    if (cents !== void 0 && !(Number.isSafeInteger(cents) && cents >= 0))
      return `defaultBudgets.${name}: not an amount`;
  }
  return null;
}
function validateTimes(event, nowMs) {
  for (const name of ['startedAt', 'endedAt']) if (!isTime(event[name])) return `${name}: not a time`;
  return Date.parse(event['endedAt']) > nowMs + MAX_CLOCK_AHEAD_MS ? 'endedAt: in the future' : null;
}
function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
function isName(value) {
  return typeof value === 'string' && value.length <= MAX_NAME_CHARS && NAME.test(value);
}
function isAmount(value, max) {
  return typeof value === 'string' && DIGITS.test(value) && BigInt(value) <= max;
}
function isTime(value) {
  if (typeof value !== 'string' || !TIME.test(value)) return false;
  const ms = Date.parse(value);
  const day = Number(value.slice(8, 10));
  return !Number.isNaN(ms) && (day <= 28 || new Date(ms).getUTCDate() === day);
}
function periodOf(instant) {
  const iso = instant.toISOString();
  if (!/^\d{4}-/.test(iso)) throw new RangeError(`${iso} is outside the years that a period can name`);
  return iso.slice(0, 7);
}
function chargePeriod(endedAt) {
  return periodOf(endedAt);
}
const MAX_TEXT_CHARS = 128;
const NO_TEXT = /[\0\p{Cs}]/u;
const MAX_NANOS = 2n ** 63n - 1n;
function readCharge(charge) {
  const { id, tenantId, keyId, costNanos, overrunNanos = '0', endedAt, defaultBudgets } = charge ?? {};
  for (const [name, value] of Object.entries({
    id,
    tenantId,
    keyId,
  }))
    if (typeof value !== 'string' || value === '' || value.length > MAX_TEXT_CHARS || NO_TEXT.test(value))
      return { reason: `${name} is no id` };
  for (const [name, value] of Object.entries({
    costNanos,
    overrunNanos,
  })) {
    if (typeof value !== 'string' || !/^\d{1,19}$/.test(value)) return { reason: `${name} is no decimal string` };
    if (BigInt(value) > MAX_NANOS) return { reason: `${name} is out of range` };
  }
  const ended = typeof endedAt === 'string' ? new Date(endedAt) : new Date(NaN);
  if (Number.isNaN(ended.getTime()) || ended.getUTCFullYear() < 2e3 || ended.getUTCFullYear() > 9999)
    return { reason: 'endedAt is no time' };
  if (!areDefaultBudgets(defaultBudgets)) return { reason: 'defaultBudgets are no budgets' };
  return {
    id,
    tenantId,
    keyId,
    costNanos: BigInt(costNanos),
    overrunNanos: BigInt(overrunNanos),
    endedAt: ended,
    ownPeriod: chargePeriod(ended),
    ...(defaultBudgets && { defaultBudgets }),
  };
}
function areDefaultBudgets(value) {
  if (value === void 0) return true;
  if (typeof value !== 'object' || value === null) return false;
  const { tenantCents, keyCents } = value;
  return isCents(tenantCents) && isCents(keyCents);
}
function isCents(value) {
  return value === void 0 || (Number.isSafeInteger(value) && value >= 0);
}
const MAX_VERSION = 2n ** 63n - 1n;
const VERSION = /^\d{1,19}$/;
const AMOUNT = /^-?\d{1,30}$/;
const MAX_ID_CHARS = 128;
function validateBalanceUpdate(value) {
  if (typeof value !== 'object' || value === null) return 'not an object';
  const { tenantId, version, balanceNanos, releases, suspended, budgets } = value;
  if (!isId('ten', tenantId)) return 'tenantId: not a tenant id';
  if (!isVersion(version)) return 'version: not a version';
  if (!matches(balanceNanos, AMOUNT)) return 'balanceNanos: not an amount';
  if (typeof suspended !== 'boolean') return 'suspended: not a boolean';
  if (!Array.isArray(releases) || !releases.every(isHoldId)) return 'releases: not a list of ids';
  if (budgets === void 0) return null;
  return Array.isArray(budgets) && budgets.every(isBudget) ? null : 'budgets: not a list of budgets';
}
const matches = (value, pattern) => typeof value === 'string' && pattern.test(value);
const isVersion = (value) => matches(value, VERSION) && BigInt(value) <= MAX_VERSION;
function isHoldId(value) {
  return typeof value === 'string' && value.length <= MAX_ID_CHARS && !value.includes('\0');
}
function isBudget(value) {
  if (typeof value !== 'object' || value === null) return false;
  const { keyId, version, budgetNanos } = value;
  const isAmount = budgetNanos === 'none' || budgetNanos === 'default' || matches(budgetNanos, AMOUNT);
  return (keyId === null || isId('key', keyId)) && isVersion(version) && isAmount;
}
function validateTenantUpdate(value) {
  if (typeof value !== 'object' || value === null) return 'not an object';
  const { tenantId, version, status } = value;
  if (!isId('ten', tenantId)) return 'tenantId: not a tenant id';
  if (!Number.isSafeInteger(version) || version < 0) return 'version: not a version';
  return status === 'active' || status === 'suspended' ? null : 'status: unknown';
}
exports.readCharge = readCharge;
exports.validateBalanceUpdate = validateBalanceUpdate;
exports.validateTenantUpdate = validateTenantUpdate;
exports.validateUsageEvent = validateUsageEvent;
