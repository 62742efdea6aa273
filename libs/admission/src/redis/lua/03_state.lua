-- The state of a tenant, in five keys of one slot:
--   1 credit       hash   version, balance, settled, pending (nanos), in_flight, spent in month, requests_us and
--                         tokens_us (the tenant's buckets), budget, …; life: the store epoch, made after the store was
--                         emptied, when the books are asked or with the first hold. It distinguishes a lost hold from
--                         one that ended. The field keeps its former name, because stored tenants have it. In a
--                         failover, admissions, history and had_admissions do (`is_lost`).
--   2 keys         hash   key id → the same for each inference key; its budget separately, under key id .. BUDGET
--   3 pending      hash   hold id → hold
--   4 settled      hash   hold id → cost and record
--   5 unconfirmed  zset   hold id by the time (ms) since which its release is awaited
-- A newer version of this library may add fields and append to the packed tuples. Each version must read what the other
-- one writes.
local CREDIT, KEYS_OF, PENDING, SETTLED, UNCONFIRMED = 1, 2, 3, 4, 5
local BUDGET = ':budget'
local EPOCH = 'life'
local MINUTE_US = 60000000
-- Arguments of one command: Lua's stack holds a few thousand.
local MAX_UNPACKED = 1000

-- A budget of the operator and its version, packed together. False instead of nanos: the budget that the request brings
-- from the configuration is in force.
local function unpack_budget(packed)
  if not packed then
    return false, 0
  end
  return cmsgpack.unpack(packed)
end

local function load_tenant(keys)
  local v = redis.call('HMGET', keys[CREDIT], 'version', 'balance', 'settled', 'pending', 'in_flight', 'month', 'spent',
    'requests_us', 'tokens_us', 'suspended', 'deadline_ms', 'restored', 'budget', EPOCH, 'hold_mean_ms',
    'progressed_ms', 'written_us', 'model_means', 'admissions', 'history', 'had_admissions')
  return {
    exists = v[1] ~= false,
    version = amount_of(v[1]), balance = amount_of(v[2]), settled = amount_of(v[3]), pending = amount_of(v[4]),
    in_flight = tonumber(v[5] or 0), month = tonumber(v[6] or 0), spent = amount_of(v[7]),
    requests_us = tonumber(v[8] or 0), tokens_us = tonumber(v[9] or 0), suspended = v[10] == '1',
    -- At most the earliest deadline of all pending holds; nil: there are none.
    deadline_ms = v[11] and v[11] ~= '' and tonumber(v[11]) or nil,
    -- The books were asked for credit and for what was spent in the month.
    restored = v[12] == '1',
    own_budget = (unpack_budget(v[13])),
    store_epoch = v[14] or nil,
    -- The mean length of ended holds, weighted towards the newer ones. 0: none has ended yet.
    hold_mean_ms = tonumber(v[15] or 0),
    -- At least the last heartbeat of any pending hold.
    progressed_ms = tonumber(v[16] or 0),
    -- When the buckets were written; 0: unknown.
    written_us = tonumber(v[17] or 0),
    -- As packed; false: no hold has ended yet.
    model_means = v[18],
    -- The holds made in this store epoch; the replication history in which the last one was made, and how many the
    -- server had when that history began.
    admissions = tonumber(v[19]) or 0, history = v[20] or '', had_admissions = tonumber(v[21]) or 0,
  }
end

-- Writes the fields that the call has changed. Every known tenant has a version.
local function save_tenant(keys, t, ...)
  local values = {}
  if not t.exists then
    values[1], values[2] = 'version', text(t.version)
  end
  for _, field in ipairs({ ... }) do
    local n, value = #values, t[field]
    values[n + 1], values[n + 2] = field, value and text(value) or ''
  end
  if #values > 0 then
    redis.call('HSET', keys[CREDIT], unpack(values))
  end
end

-- `loaded`: the key states that this call uses, by id.
local function load_key(keys, loaded, key_id)
  local k = loaded[key_id]
  if not k then
    local packed = redis.call('HMGET', keys[KEYS_OF], key_id, key_id .. BUDGET)
    k = { pending = 0, in_flight = 0, month = 0, spent = 0, requests_us = 0, tokens_us = 0, written_us = 0 }
    if packed[1] then
      k.pending, k.in_flight, k.month, k.spent, k.requests_us, k.tokens_us, k.written_us = cmsgpack.unpack(packed[1])
      k.written_us = k.written_us or 0
    end
    k.own_budget = (unpack_budget(packed[2]))
    loaded[key_id] = k
  end
  return k
end

local function save_keys(keys, loaded)
  for key_id, k in pairs(loaded) do
    if k.changed then
      redis.call('HSET', keys[KEYS_OF], key_id,
        cmsgpack.pack(k.pending, k.in_flight, k.month, k.spent, k.requests_us, k.tokens_us, k.written_us))
    end
  end
end

-- The store epoch of a tenant's new holds: the time of the first call that needs one.
local function begin_store_epoch(keys, t)
  if not t.store_epoch then
    t.store_epoch = table.concat(redis.call('TIME'), '.')
    redis.call('HSET', keys[CREDIT], EPOCH, t.store_epoch)
  end
end

-- The replication history of this server. Each promotion and each restart begins a new one. INFO takes several µs, so
-- it is asked ten times a second at most: no server is demoted and promoted again in between.
local HISTORY_US = 100000
local history, history_at_us
local function history_id()
  local now = now_us('')
  if not history or now < history_at_us or now - history_at_us > HISTORY_US then
    history = redis.call('INFO', 'replication'):match('master_replid:(%w+)') or ''
    history_at_us = now
  end
  return history
end

-- The store epoch that a call returns for its holds, `made` of which are new: the tenant's epoch, the replication
-- history, and the number of the last hold.
local function epoch_of_holds(keys, t, made)
  local own = history_id()
  if made > 0 then
    t.had_admissions = t.history == own and t.had_admissions or t.admissions
    t.admissions, t.history = t.admissions + made, own
    redis.call('HSET', keys[CREDIT], 'admissions', text(t.admissions), 'history', own,
      'had_admissions', text(t.had_admissions))
  end
  return t.store_epoch .. ':' .. own .. ':' .. text(t.admissions)
end

-- Whether a missing hold with this store epoch (false: unknown) was lost: with all others of the tenant, or because it
-- had not reached the server that was promoted since. A hold that the server had when it was promoted has ended. An
-- epoch of the former version is only that of the tenant.
local function is_lost(keys, store_epoch)
  if not store_epoch then
    return false
  end
  local life, its_history, number = store_epoch:match('^([^:]*):?(%w*):?(%d*)$')
  local t = load_tenant(keys)
  if life ~= t.store_epoch then
    return true
  end
  local own = history_id()
  if number == '' or its_history == own then
    return false
  end
  return tonumber(number) > (t.history == own and t.had_admissions or t.admissions)
end

-- rule 3: spendable and unspent
-- What is not yet spent of a budget in the month of the call, or false if there is no budget. An older month's sum does
-- not count. `default` is the budget that the request brings from the configuration, or false.
local function unspent(month, of, default)
  local budget = of.own_budget or default
  return budget and sub(budget, of.month >= month and of.spent or 0)
end

local function pack_hold(h)
  return cmsgpack.pack(
    h.key_id, h.nanos, h.output_tokens, h.tokens, h.key_tokens_per_minute, h.tenant_tokens_per_minute,
    h.key_budget, h.tenant_budget, h.deadline_ms, h.progressed_ms, h.delivered, h.draft, h.admitted_ms,
    h.claim or false)
end

local function unpack_hold(packed)
  local h = {}
  h.key_id, h.nanos, h.output_tokens, h.tokens, h.key_tokens_per_minute, h.tenant_tokens_per_minute,
    h.key_budget, h.tenant_budget, h.deadline_ms, h.progressed_ms, h.delivered, h.draft, h.admitted_ms,
    h.claim = cmsgpack.unpack(packed)
  return h
end

-- The stored value of each id, or false.
local function fetch(key, ids)
  local found = {}
  for first = 1, #ids, MAX_UNPACKED do
    local last = math.min(first + MAX_UNPACKED - 1, #ids)
    for i, value in ipairs(redis.call('HMGET', key, unpack(ids, first, last))) do
      found[first + i - 1] = value
    end
  end
  return found
end

-- `command key` with all of `args`, in groups of `step`.
local function in_parts(command, key, args, step)
  local size = MAX_UNPACKED - MAX_UNPACKED % step
  for first = 1, #args, size do
    redis.call(command, key, unpack(args, first, math.min(first + size - 1, #args)))
  end
end

-- rule 9: bucket arithmetic
-- How far `amount` moves the time at which a bucket of `per_minute` is full: ⌊min(amount, per_minute) × 60 s /
-- per_minute⌋ in µs. An amount above the whole bucket counts as the whole bucket, because it could never pass
-- otherwise. Rounded down, so that a burst up to the limit always fits.
local function bucket_us(amount, per_minute)
  local counted = math.min(amount, per_minute)
  if counted * MINUTE_US < SAFE then
    return math.floor(counted * MINUTE_US / per_minute)
  end
  -- In three steps, each within the exact range of a double: per_minute is at most 10^12.
  local quotient, rest = 0, counted
  for _, factor in ipairs({ 1000, 1000, 60 }) do
    local scaled = rest * factor
    local whole = math.floor(scaled / per_minute)
    quotient = quotient * factor + whole
    rest = scaled - whole * per_minute
  end
  return quotient
end

-- rule 1: a clock that was ahead
-- Reads the buckets of `of` (a tenant or a key) by this clock; they are full now at the earliest. Buckets written at a
-- time in the future, by a clock that was ahead, have the state now that they had then. The requests bucket also tells
-- how far the clock was ahead, to the minute, because it never needs more than a minute to fill; an older version of
-- this library records only that. The tokens bucket may need more, because settlements correct it. Returns whether the
-- clock was ahead. The caller then writes the buckets, so that they fill from now on. Otherwise each read would
-- start them again.
local function read_buckets(of, now)
  local ahead = math.max(0, of.written_us - now, of.requests_us - MINUTE_US - now)
  of.requests_us = math.max(of.requests_us - ahead, now)
  of.tokens_us = math.max(of.tokens_us - ahead, now)
  of.written_us = now
  return ahead > 0
end

local function left_in_bucket(full_us, used_us, per_minute)
  return math.floor(math.max(full_us - used_us, 0) * per_minute / MINUTE_US)
end

-- Appends the state of the two buckets of `of` (a tenant or a key): what is left, and the time until each is full.
local function add_buckets(out, now, of, requests_per_minute, tokens_per_minute)
  local full, n = now + MINUTE_US, #out
  out[n + 1] = left_in_bucket(full, of.requests_us, requests_per_minute)
  out[n + 2] = math.floor((of.requests_us - now + 999) / 1000)
  out[n + 3] = left_in_bucket(full, of.tokens_us, tokens_per_minute)
  out[n + 4] = math.floor((of.tokens_us - now + 999) / 1000)
end
