-- Computes a tenant's state anew from the books and from its holds, whatever is stored: forged, incomplete or
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

-- rule 30: repair
-- args: now_ms or '', [version, balance, suspended, [[month, spent by the tenant in it, [[key id, spent by the key],
-- …]], …], [[key id or '', version, nanos or false], …], ids of settled holds to release] as JSON. Returns the
-- number of unreadable holds, which it has dropped.
local function repair(keys, args)
  local now = now_us(args[1])
  local now_ms, month = math.floor(now / 1000), month_of(now)
  local a = cjson.decode(args[2])
  local sums = { tenant = { pending = 0, settled = 0, in_flight = 0 }, keys = {} }
  local function sum_of(key_id)
    sums.keys[key_id] = sums.keys[key_id] or { pending = 0, settled = 0, in_flight = 0 }
    return sums.keys[key_id]
  end
  local dropped, deadline_ms, progressed_ms = 0, nil, 0

  -- 1. The holds, from which all sums follow. Unreadable ones would block every sweep.
  local all, gone = fields_of(keys[PENDING], 'hash'), {}
  for i = 1, #all, 2 do
    local h = readable_hold(all[i + 1])
    if h then
      for _, sum in ipairs({ sums.tenant, sum_of(h.key_id) }) do
        sum.pending, sum.in_flight = add(sum.pending, h.nanos), sum.in_flight + 1
      end
      deadline_ms = math.min(deadline_ms or h.deadline_ms, h.deadline_ms)
      progressed_ms = math.max(progressed_ms, h.progressed_ms)
    else
      gone[#gone + 1] = all[i]
    end
  end
  in_parts('HDEL', keys[PENDING], gone, 1)
  dropped, gone = #gone, {}
  all = fields_of(keys[SETTLED], 'hash')
  local is_released = {}
  for _, id in ipairs(a[6]) do
    is_released[id] = true
  end
  local owed = {}
  for i = 1, #all, 2 do
    local cost, key_id = readable_settled(all[i + 1])
    if is_released[all[i]] then
      gone[#gone + 1] = all[i]
    elseif cost then
      for _, sum in ipairs({ sums.tenant, sum_of(key_id) }) do
        sum.settled = add(sum.settled, cost)
      end
      owed[all[i]] = true
    else
      gone[#gone + 1] = all[i]
      dropped = dropped + 1
    end
  end
  in_parts('HDEL', keys[SETTLED], gone, 1)

  -- 2. The settled holds that await their release, each since its own time, or since now.
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

  -- 3. What was spent in the month, and the budgets: only those of the books.
  local spent, spent_by = nil, {}
  for _, one in ipairs(a[4]) do
    if one[1] == month then
      spent = one[2]
      for _, of in ipairs(one[3]) do
        spent_by[of[1]] = of[2]
      end
    end
  end
  local own_budget, budgets = nil, {}
  for _, one in ipairs(a[5]) do
    local packed = cmsgpack.pack(one[3], one[2])
    if one[1] == '' then
      own_budget = packed
    else
      budgets[one[1]] = packed
    end
  end

  -- 4. The keys that have a state, holds, or something spent.
  local states, is_lost_spent = {}, nil
  all, is_lost_spent = fields_of(keys[KEYS_OF], 'hash')
  for i = 1, #all, 2 do
    if all[i]:sub(-#BUDGET) ~= BUDGET then
      states[all[i]] = all[i + 1]
      sum_of(all[i])
    end
  end
  for key_id in pairs(spent_by) do
    sum_of(key_id)
  end
  redis.call('DEL', keys[KEYS_OF])
  local writes = {}
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

  -- 5. The tenant. No withdrawal remains: the books are locked, so one that they do not include will never be booked.
  local was = {}
  all = fields_of(keys[CREDIT], 'hash')
  for i = 1, #all, 2 do
    was[all[i]] = all[i + 1]
  end
  redis.call('DEL', keys[CREDIT])
  is_lost_spent = is_lost_spent or was.restored ~= '1' or not whole(was.month, nil) or not readable_amount(was.spent)
  local its_month, its_spent = whole(was.month, 0), readable_amount(was.spent) or 0
  if spent then
    its_spent = clamp_spent(its_month >= month and its_spent or 0, spent, sums.tenant.settled)
    its_month = month
  end
  local requests_us, tokens_us = honest_buckets(was.requests_us, was.tokens_us, was.written_us, now)
  local fields = {
    version = text(a[1]), balance = text(a[2]), suspended = a[3] and '1' or '0',
    settled = text(sums.tenant.settled), pending = text(sums.tenant.pending),
    in_flight = text(sums.tenant.in_flight), month = text(its_month), spent = text(its_spent),
    requests_us = text(requests_us), tokens_us = text(tokens_us), written_us = text(now),
    deadline_ms = deadline_ms and text(deadline_ms) or '', progressed_ms = text(progressed_ms),
    hold_mean_ms = text(math.max(0, whole(was.hold_mean_ms, 0))),
    -- The books were asked just now. What was spent in the month is requested again, as after a complete loss, if
    -- neither metering nor the stored state has it.
    restored = (spent or not is_lost_spent) and '1' or nil, [EPOCH] = was[EPOCH], budget = own_budget,
  }
  writes = {}
  for field, value in pairs(fields) do
    writes[#writes + 1] = field
    writes[#writes + 1] = value
  end
  redis.call('HSET', keys[CREDIT], unpack(writes))
  return dropped
end
