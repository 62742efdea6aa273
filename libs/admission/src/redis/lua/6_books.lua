-- Between the holds and the books: expired holds, unconfirmed settlements, balance updates.

-- rule 24: the expired event
-- The usage event of an expired pending hold: its draft, what was recorded as delivered, and the cost, which is at most
-- the held amount. Also returns the cost and the tokens. The model and the price of what served it come after those of
-- the draft, and replace them for every reader of JSON.
local function expired_event(h)
  local prompt_tokens, cached_tokens, completion_tokens, delivered_nanos, served = cmsgpack.unpack(h.delivered)
  local cost = least(delivered_nanos, h.nanos)
  -- The draft is a JSON object: the other fields of the event go before its last brace.
  local event = h.draft:sub(1, -2) .. (served and ',' .. served or '') .. string.format(
    ',"promptTokens":%.0f,"cachedTokens":%.0f,"completionTokens":%.0f,"costNanos":"%s","overrunNanos":"%s",'
      .. '"estimated":true,"outcome":"expired","endedAt":"%s"}',
    prompt_tokens, cached_tokens, completion_tokens, text(cost), text(sub(delivered_nanos, cost)),
    iso_time(h.progressed_ms))
  return event, cost, prompt_tokens + completion_tokens
end

-- rule 23: expiry
-- Ends at most `limit` pending holds past their deadline: settled at what was delivered, or removed if nothing was.
-- Returns the records of the settled ones. A last heartbeat in the future by this clock (it went back) counts as now,
-- so the hold has a lease from now on.
local function expire(keys, now, limit)
  local now_ms = math.floor(now / 1000)
  local bounds = redis.call('HMGET', keys[CREDIT], 'deadline_ms', 'progressed_ms')
  local is_ahead = tonumber(bounds[2] or 0) > now_ms
  if not bounds[1] or bounds[1] == '' or (tonumber(bounds[1]) > now_ms and not is_ahead) then
    return {}
  end
  -- 1. Read all pending holds, one for each running request: about once a lease.
  local ends, next_ms, writes = {}, nil, {}
  local all = redis.call('HGETALL', keys[PENDING])
  for i = 1, #all, 2 do
    local h = unpack_hold(all[i + 1])
    -- rule 22: dates in the future
    if h.progressed_ms > now_ms then
      h.deadline_ms, h.progressed_ms = now_ms + h.deadline_ms - h.progressed_ms, now_ms
      writes[#writes + 1] = all[i]
      writes[#writes + 1] = pack_hold(h)
    end
    if h.deadline_ms <= now_ms and #ends < limit then
      local e = { id = all[i], tokens = 0, claim = h.claim }
      if h.delivered then
        e.record, e.cost, e.tokens = expired_event(h)
        e.month = month_of(h.progressed_ms * 1000)
      end
      ends[#ends + 1] = e
    else
      next_ms = math.min(next_ms or h.deadline_ms, h.deadline_ms)
    end
  end
  in_parts('HSET', keys[PENDING], writes, 2)
  -- 2. Settle or remove them.
  local records = {}
  if #ends > 0 then
    end_holds(keys, now, ends)
    for _, e in ipairs(ends) do
      records[#records + 1] = e.record
      -- rule 32: the answer of a claim
      -- Nobody has the answer, and the request must not be charged again. A sweep of the former version names no keys
      -- of claims.
      if e.record and e.claim and keys[CLAIMS] then
        settle_claim(keys, e.claim, e.id, '')
      end
    end
  end
  redis.call('HSET', keys[CREDIT], 'deadline_ms', next_ms and text(next_ms) or '')
  if is_ahead then
    redis.call('HSET', keys[CREDIT], 'progressed_ms', text(now_ms))
  end
  return records
end

-- args: now_ms or '', the maximum number of expired holds, the maximum number of settled ones, confirm_after_ms.
-- Returns the number of expired holds that were settled, the numbers of pending and settled holds now, and the records:
-- those of the expired holds, then those of the settled holds that were not confirmed in time, the oldest first.
local function sweep(keys, args)
  local now = now_us(args[1])
  local now_ms = math.floor(now / 1000)
  -- A hold that was settled just now is not overdue, whatever the waiting time. So the others are looked up first.
  local limit = tonumber(args[3])
  -- rule 22: dates in the future
  -- Unconfirmed since a time in the future counts as since now.
  local ahead = {}
  local in_future = limit > 0
    and redis.call('ZRANGEBYSCORE', keys[UNCONFIRMED], '(' .. text(now_ms), '+inf', 'LIMIT', 0, limit) or {}
  for _, id in ipairs(in_future) do
    ahead[#ahead + 1] = text(now_ms)
    ahead[#ahead + 1] = id
  end
  in_parts('ZADD', keys[UNCONFIRMED], ahead, 2)
  local latest = text(now_ms - tonumber(args[4]))
  local owed = limit > 0
    and redis.call('ZRANGEBYSCORE', keys[UNCONFIRMED], '-inf', latest, 'LIMIT', 0, limit) or {}
  local out = expire(keys, now, tonumber(args[2]))
  local expired = #out
  -- rule 25: unconfirmed settlements
  local moved = {}
  for i, packed in ipairs(fetch(keys[SETTLED], owed)) do
    if packed then
      local _, record = cmsgpack.unpack(packed)
      out[#out + 1] = record
      moved[#moved + 1] = text(now_ms)
      moved[#moved + 1] = owed[i]
    end
  end
  in_parts('ZADD', keys[UNCONFIRMED], moved, 2)
  return { expired, redis.call('HLEN', keys[PENDING]), redis.call('ZCARD', keys[UNCONFIRMED]), out }
end

-- rule 26: newer balance
-- Applies the balance only if it is newer, and the releases always: settled holds are deleted, and their cost leaves
-- the settled sum together with the arrival of the balance that includes it. A balance from before a withdrawal does
-- not undo the withdrawal.
local function take_balance(keys, version, balance, suspended, releases)
  if less(amount_of(redis.call('HGET', keys[CREDIT], 'version')), version) then
    local left = sub(balance, withdrawals_after(keys, version))
    redis.call('HSET', keys[CREDIT], 'version', text(version), 'balance', text(left),
      'suspended', suspended and '1' or '0')
  else
    redis.call('HSETNX', keys[CREDIT], 'version', '0')
  end
  -- rule 27: releases
  local released, gone = 0, {}
  for i, packed in ipairs(fetch(keys[SETTLED], releases)) do
    -- An id twice in one list is released once.
    if packed and redis.call('HDEL', keys[SETTLED], releases[i]) == 1 then
      local cost = cmsgpack.unpack(packed)
      released = add(released, cost)
      gone[#gone + 1] = releases[i]
    end
  end
  if #gone > 0 then
    in_parts('ZREM', keys[UNCONFIRMED], gone, 1)
    local settled = amount_of(redis.call('HGET', keys[CREDIT], 'settled'))
    redis.call('HSET', keys[CREDIT], 'settled', text(sub(settled, released)))
  end
end

-- rule 28: newer budgets
-- `budgets`: [[key id or '', version, nanos or false], …]. Each is applied only if it is newer than the stored one,
-- so order and repeats do not matter.
local function take_budgets(keys, budgets)
  for _, one in ipairs(budgets) do
    local key_id, version, nanos = one[1], one[2], one[3]
    local of, field = keys[KEYS_OF], key_id .. BUDGET
    if key_id == '' then
      of, field = keys[CREDIT], 'budget'
    end
    local _, known = unpack_budget(redis.call('HGET', of, field))
    if known < version then
      redis.call('HSET', of, field, cmsgpack.pack(nanos, version))
    end
  end
end

-- args: [[version, balance, suspended, [ids], [budgets]], …] as JSON. Returns whether the tenant's credit was
-- requested since the store was emptied.
local function apply_balance_updates(keys, args)
  for _, a in ipairs(cjson.decode(args[1])) do
    take_balance(keys, a[1], a[2], a[3], a[4])
    take_budgets(keys, a[5])
  end
  return redis.call('HEXISTS', keys[CREDIT], 'restored')
end

local function take_spent(of, month, spent)
  -- Both sums include what was settled here and has reached metering. The larger one is nearer to the truth.
  of.spent = month > of.month and spent or most(of.spent, spent)
  of.month = month
end

-- Restores a tenant that the store lost or never had. args: now_ms or '', version, balance, suspended, ids and [[month,
-- spent by the tenant in it, [[key id, spent by the key], …]], …] and the budgets, as one JSON array. The current
-- month by this clock counts: the caller's may differ.
local function restore(keys, args)
  local a = cjson.decode(args[2])
  take_balance(keys, a[1], a[2], a[3], a[4])
  take_budgets(keys, a[6])
  local month = month_of(now_us(args[1]))
  local t, loaded = load_tenant(keys), {}
  for _, spent in ipairs(a[5]) do
    if spent[1] == month then
      take_spent(t, month, spent[2])
      for _, one in ipairs(spent[3]) do
        local k = load_key(keys, loaded, one[1])
        take_spent(k, month, one[2])
        k.changed = true
      end
    end
  end
  save_keys(keys, loaded)
  save_tenant(keys, t, 'month', 'spent')
  redis.call('HSET', keys[CREDIT], 'restored', '1')
  return 1
end

local function read_snapshot(keys)
  local t = load_tenant(keys)
  if not t.exists and redis.call('EXISTS', keys[PENDING], keys[SETTLED]) == 0 then
    return false
  end
  local pending, settled, pending_holds, settled_holds, oldest = 0, 0, 0, 0, false
  for _, packed in ipairs(redis.call('HVALS', keys[PENDING])) do
    pending_holds = pending_holds + 1
    pending = add(pending, unpack_hold(packed).nanos)
  end
  local all = redis.call('HGETALL', keys[SETTLED])
  for i = 1, #all, 2 do
    local cost = cmsgpack.unpack(all[i + 1])
    settled_holds = settled_holds + 1
    settled = add(settled, cost)
    oldest = (not oldest or all[i] < oldest) and all[i] or oldest
  end
  if not t.exists then
    return false
  end
  local withdrawn = 0
  for _, one in ipairs(withdrawals_of(keys)) do
    if less(t.version, one[1]) then
      withdrawn = add(withdrawn, one[2])
    end
  end
  return {
    text(t.version), text(t.balance), text(t.settled), text(t.pending), pending_holds, settled_holds,
    text(pending), text(settled), oldest,
    t.suspended and '1' or '0', text(t.in_flight), text(withdrawn),
  }
end

-- Reads all of the tenant's holds, so it is for reconcile and not for a request. Returns nothing, or version, balance,
-- settled, pending, numbers of pending and settled holds, their sums, the lowest id among the settled ones, whether the
-- tenant is suspended, the number of running requests, and the withdrawals for versions to come. Or 'unreadable' and
-- the reason: this library did not write the stored state.
local function snapshot(keys)
  local ok, found = pcall(read_snapshot, keys)
  if ok then
    return found
  end
  local why = tostring(type(found) == 'table' and found.err or found)
  -- A missing right says nothing about the stored state.
  if why:find('NOPERM', 1, true) then
    return redis.error_reply(why)
  end
  return { 'unreadable', why }
end

-- What was delivered under a pending hold, as the members of a JSON object.
local function delivered_members(h)
  local prompt_tokens, cached_tokens, completion_tokens, nanos, served = cmsgpack.unpack(h.delivered)
  return string.format('"promptTokens":%.0f,"cachedTokens":%.0f,"completionTokens":%.0f,"costNanos":"%s"',
    prompt_tokens, cached_tokens, completion_tokens, text(nanos)) .. (served and ',' .. served or '')
end

-- args: now_ms or '', an id, a limit, 1 for running requests or 0. Returns now (ms), then for each hold with a greater
-- id, ascending: id, state, nanos, and the time (ms) of the last heartbeat, or the record. With 1, a pending hold also
-- has its draft and what was delivered ('': nothing).
local function holds(keys, args)
  local all = { pending = redis.call('HGETALL', keys[PENDING]), settled = redis.call('HGETALL', keys[SETTLED]) }
  local ids, found = {}, {}
  for state, fields in pairs(all) do
    for i = 1, #fields, 2 do
      if fields[i] > args[2] then
        ids[#ids + 1] = fields[i]
        found[fields[i]] = { state, fields[i + 1] }
      end
    end
  end
  table.sort(ids)
  local out = { text(math.floor(now_us(args[1]) / 1000)) }
  for n = 1, math.min(#ids, tonumber(args[3])) do
    local state, packed = found[ids[n]][1], found[ids[n]][2]
    local nanos, since
    local draft, delivered = '', ''
    if state == 'pending' then
      local h = unpack_hold(packed)
      nanos, since = h.nanos, text(h.progressed_ms)
      if args[4] == '1' then
        draft, delivered = h.draft, h.delivered and '{' .. delivered_members(h) .. '}' or ''
      end
    else
      nanos, since = cmsgpack.unpack(packed)
    end
    for _, value in ipairs({ ids[n], state, text(nanos), since, draft, delivered }) do
      out[#out + 1] = value
    end
  end
  return out
end

-- For the registry, not for a tenant. args: a time (ms), tenants without holds. Removes them from `keys[1]` (zset:
-- tenant by the time at which a process last registered it), except those that a process registered after that time.
local function forget_idle(keys, args)
  for i = 2, #args do
    local told_ms = redis.call('ZSCORE', keys[1], args[i])
    if told_ms and tonumber(told_ms) <= tonumber(args[1]) then
      redis.call('ZREM', keys[1], args[i])
    end
  end
  return 1
end
