-- Recomputes a tenant's state from the books and from its holds, whatever is stored: forged, incomplete or
-- unreadable.

-- No genuine request leaves a bucket further from full than this. A token bucket may exceed its minute, because
-- settlements correct it.
local LONGEST_REFILL_US = 3600000000

-- A whole number that a double holds exactly, or the default. The input may be anything.
local function whole(value, default)
  local number = tonumber(value)
  if number and number > -SAFE and number < SAFE and math.floor(number) == number then
    return number
  end
  return default
end

-- The same for amounts of any size.
local function readable_amount(value)
  if type(value) == 'number' then
    return whole(value, nil)
  end
  return type(value) == 'string' and #value <= 40 and value:match('^%-?%d+$') and amount_of(value) or nil
end

local function is_cost(value)
  local cost = readable_amount(value)
  return cost and not less(cost, 0)
end

local function all_whole(...)
  for i = 1, select('#', ...) do
    local value = select(i, ...)
    if type(value) ~= 'number' or not whole(value, nil) then
      return false
    end
  end
  return true
end

local function readable_hold(packed)
  local ok, h = pcall(unpack_hold, packed)
  if not ok or type(h.key_id) ~= 'string' or type(h.draft) ~= 'string' or not is_cost(h.nanos)
    or not all_whole(h.output_tokens, h.tokens, h.key_tokens_per_minute, h.tenant_tokens_per_minute)
    or not all_whole(h.deadline_ms, h.progressed_ms)
    or h.key_tokens_per_minute < 1 or h.tenant_tokens_per_minute < 1
    or (h.key_budget and not readable_amount(h.key_budget))
    or (h.tenant_budget and not readable_amount(h.tenant_budget))
    or (h.admitted_ms and not all_whole(h.admitted_ms)) or not pcall(cjson.decode, h.draft) then
    return nil
  end
  if h.delivered then
    local read, prompt_tokens, cached_tokens, completion_tokens, cost = pcall(cmsgpack.unpack, h.delivered)
    if not read or not all_whole(prompt_tokens, cached_tokens, completion_tokens) or not is_cost(cost) then
      return nil
    end
  end
  return h
end

local function readable_settled(packed)
  local ok, cost, record = pcall(cmsgpack.unpack, packed)
  if not ok or not is_cost(cost) or type(record) ~= 'string' then
    return nil
  end
  local is_json, event = pcall(cjson.decode, record)
  if not is_json or type(event) ~= 'table' or type(event.keyId) ~= 'string' then
    return nil
  end
  return cost, event.keyId
end

-- Removes a key of another type, so that it can be read as a hash. Returns whether there was one.
local function fields_of(key, type_name)
  local its_type = redis.call('TYPE', key).ok
  if its_type ~= type_name then
    redis.call('DEL', key)
    return {}, its_type ~= 'none'
  end
  return redis.call('HGETALL', key)
end

-- The buckets' current state, as `read_buckets` reads it. Full if no genuine request can have left them in that state.
local function honest_buckets(requests_us, tokens_us, written_us, now)
  requests_us, tokens_us = whole(requests_us, 0), whole(tokens_us, 0)
  local from = math.max(now, whole(written_us, 0))
  local requests_left = requests_us > from + MINUTE_US and 0 or requests_us - from
  local tokens_left = tokens_us > from + LONGEST_REFILL_US and 0 or tokens_us - from
  return now + math.max(requests_left, 0), now + math.max(tokens_left, 0)
end

-- What was spent in a month: at least metering's sum, at most that plus everything settled here.
local function clamp_spent(value, spent, settled)
  return least(most(readable_amount(value) or 0, spent), add(spent, settled))
end

local function new_sum()
  return { pending = 0, settled = 0, in_flight = 0 }
end

-- The sums of a tenant's holds, and those of each key.
local function sums_of(sums, key_id)
  sums.keys[key_id] = sums.keys[key_id] or new_sum()
  return { sums.tenant, sums.keys[key_id] }
end

-- Step 1, the running requests. Adds them to `sums`, and drops unreadable ones, which would block every sweep. Returns
-- how many it dropped, the earliest deadline and the last heartbeat.
local function repair_pending(keys, sums)
  local all, gone = fields_of(keys[PENDING], 'hash'), {}
  local deadline_ms, progressed_ms = nil, 0
  for i = 1, #all, 2 do
    local h = is_storable(all[i]) and readable_hold(all[i + 1])
    if h then
      for _, sum in ipairs(sums_of(sums, h.key_id)) do
        sum.pending, sum.in_flight = add(sum.pending, h.nanos), sum.in_flight + 1
      end
      deadline_ms = math.min(deadline_ms or h.deadline_ms, h.deadline_ms)
      progressed_ms = math.max(progressed_ms, h.progressed_ms)
    else
      gone[#gone + 1] = all[i]
    end
  end
  in_parts('HDEL', keys[PENDING], gone, 1)
  return #gone, deadline_ms, progressed_ms
end

-- The same for settled holds, without those to release. Returns how many were unreadable, and the ids of those that
-- remain.
local function repair_settled(keys, sums, releases)
  local all, gone = fields_of(keys[SETTLED], 'hash'), {}
  local dropped, is_released, owed = 0, {}, {}
  for _, id in ipairs(releases) do
    is_released[id] = true
  end
  for i = 1, #all, 2 do
    local cost, key_id = readable_settled(all[i + 1])
    if is_released[all[i]] then
      gone[#gone + 1] = all[i]
    elseif cost and is_storable(all[i]) then
      for _, sum in ipairs(sums_of(sums, key_id)) do
        sum.settled = add(sum.settled, cost)
      end
      owed[all[i]] = true
    else
      gone[#gone + 1] = all[i]
      dropped = dropped + 1
    end
  end
  in_parts('HDEL', keys[SETTLED], gone, 1)
  return dropped, owed
end

-- Step 2, the settled holds (`owed`) that await their release, each since its own time, or since now.
local function repair_unconfirmed(keys, owed, now_ms)
  if redis.call('TYPE', keys[UNCONFIRMED]).ok ~= 'zset' then
    redis.call('DEL', keys[UNCONFIRMED])
  end
  local stray = {}
  for _, id in ipairs(redis.call('ZRANGE', keys[UNCONFIRMED], 0, -1)) do
    if owed[id] then
      owed[id] = nil
    else
      stray[#stray + 1] = id
    end
  end
  in_parts('ZREM', keys[UNCONFIRMED], stray, 1)
  local missing = {}
  for id in pairs(owed) do
    missing[#missing + 1] = text(now_ms)
    missing[#missing + 1] = id
  end
  in_parts('ZADD', keys[UNCONFIRMED], missing, 2)
end

-- Step 3, what metering says was spent in the month (nil: metering is unavailable), also by key.
local function told_spent(months, month)
  local spent, spent_by = nil, {}
  for _, one in ipairs(months) do
    if one[1] == month then
      spent = one[2]
      for _, of in ipairs(one[3]) do
        spent_by[of[1]] = of[2]
      end
    end
  end
  return spent, spent_by
end

-- The budgets of the books, packed: of the tenant, and by key.
local function told_budgets(list)
  local own_budget, budgets = nil, {}
  for _, one in ipairs(list) do
    local packed = cmsgpack.pack(one[3], one[2])
    if one[1] == '' then
      own_budget = packed
    else
      budgets[one[1]] = packed
    end
  end
  return own_budget, budgets
end

-- Step 4, the keys that have a state, holds, or something spent. Returns whether a spent sum could not be read.
local function repair_keys(keys, sums, spent, spent_by, budgets, now, month)
  local all, is_lost_spent = fields_of(keys[KEYS_OF], 'hash')
  local states, writes = {}, {}
  for i = 1, #all, 2 do
    if all[i]:sub(-#BUDGET) ~= BUDGET then
      states[all[i]] = all[i + 1]
      sums_of(sums, all[i])
    end
  end
  for key_id in pairs(spent_by) do
    sums_of(sums, key_id)
  end
  redis.call('DEL', keys[KEYS_OF])
  for key_id, sum in pairs(sums.keys) do
    local ok, _, _, its_month, its_spent, requests_us, tokens_us, written_us =
      pcall(cmsgpack.unpack, states[key_id] or '')
    if not ok then
      its_month, its_spent, requests_us, tokens_us, written_us = 0, 0, 0, 0, 0
    end
    is_lost_spent = is_lost_spent or not ok or not states[key_id]
      or not whole(its_month, nil) or not readable_amount(its_spent)
    its_month, its_spent = whole(its_month, 0), readable_amount(its_spent) or 0
    if spent then
      its_spent = clamp_spent(its_month >= month and its_spent or 0, spent_by[key_id] or 0, sum.settled)
      its_month = month
    end
    requests_us, tokens_us = honest_buckets(requests_us, tokens_us, written_us, now)
    writes[#writes + 1] = key_id
    writes[#writes + 1] = cmsgpack.pack(sum.pending, sum.in_flight, its_month, its_spent, requests_us, tokens_us, now)
  end
  for key_id, packed in pairs(budgets) do
    writes[#writes + 1] = key_id .. BUDGET
    writes[#writes + 1] = packed
  end
  in_parts('HSET', keys[KEYS_OF], writes, 2)
  return is_lost_spent
end

-- Step 5, the tenant. No withdrawal remains: the books are locked, so one that they do not include will never be
-- booked. `is_lost_spent`: what a key has spent could not be read.
local function repair_tenant(keys, a, sum, spent, own_budget, is_lost_spent, deadline_ms, progressed_ms, now, month)
  local was = {}
  local all = fields_of(keys[CREDIT], 'hash')
  for i = 1, #all, 2 do
    was[all[i]] = all[i + 1]
  end
  redis.call('DEL', keys[CREDIT])
  is_lost_spent = is_lost_spent or was.restored ~= '1' or not whole(was.month, nil) or not readable_amount(was.spent)
  local its_month, its_spent = whole(was.month, 0), readable_amount(was.spent) or 0
  if spent then
    its_spent = clamp_spent(its_month >= month and its_spent or 0, spent, sum.settled)
    its_month = month
  end
  local requests_us, tokens_us = honest_buckets(was.requests_us, was.tokens_us, was.written_us, now)
  local fields = {
    version = text(a[1]), balance = text(a[2]), suspended = a[3] and '1' or '0',
    settled = text(sum.settled), pending = text(sum.pending),
    in_flight = text(sum.in_flight), month = text(its_month), spent = text(its_spent),
    requests_us = text(requests_us), tokens_us = text(tokens_us), written_us = text(now),
    deadline_ms = deadline_ms and text(deadline_ms) or '', progressed_ms = text(progressed_ms),
    hold_mean_ms = text(math.max(0, whole(was.hold_mean_ms, 0))),
    -- The books were asked just now. What was spent in the month is requested again, as after a complete loss, if
    -- neither metering nor the stored state has it.
    restored = (spent or not is_lost_spent) and '1' or nil, [EPOCH] = was[EPOCH], budget = own_budget,
    admissions = text(math.max(0, whole(was.admissions, 0))), history = was.history,
    had_admissions = text(math.max(0, whole(was.had_admissions, 0))),
  }
  local writes = {}
  for field, value in pairs(fields) do
    writes[#writes + 1] = field
    writes[#writes + 1] = value
  end
  redis.call('HSET', keys[CREDIT], unpack(writes))
end

-- rule 30: repair
-- args: now_ms or '', the end of its time (`repair_until`), [version, balance, suspended, [[month, spent by the tenant
-- in it, [[key id, spent by the key], …]], …], [[key id or '', version, nanos or false], …], ids of settled holds to
-- release] as JSON. Returns the number of unreadable holds, which it has dropped. Refuses when its time is over: a
-- server that stalled may reach the call after its caller has unlocked the books, and must not undo a newer version.
local function repair(keys, args)
  if now_us('') / 1000 > tonumber(args[2]) then
    return redis.error_reply('LATE the books are no longer locked')
  end
  local now = now_us(args[1])
  local month, a = month_of(now), cjson.decode(args[3])
  -- All sums follow from the holds.
  local sums = { tenant = new_sum(), keys = {} }
  local unreadable, deadline_ms, progressed_ms = repair_pending(keys, sums)
  local also_unreadable, owed = repair_settled(keys, sums, a[6])
  repair_unconfirmed(keys, owed, math.floor(now / 1000))
  local spent, spent_by = told_spent(a[4], month)
  local own_budget, budgets = told_budgets(a[5])
  local is_lost_spent = repair_keys(keys, sums, spent, spent_by, budgets, now, month)
  repair_tenant(keys, a, sums.tenant, spent, own_budget, is_lost_spent, deadline_ms, progressed_ms, now, month)
  return unreadable + also_unreadable
end
