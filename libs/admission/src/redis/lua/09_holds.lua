-- Operations on a hold between admission and its end. Each returns one value (or group) for each element, in order.

-- The holds of this call: `fetch`ed once, unpacked on first use.
local function hold_at(held, i, ids, seen)
  local h = seen[ids[i]]
  if h == nil then
    h = held[i] and unpack_hold(held[i]) or false
    seen[ids[i]] = h
  end
  return h
end

local function ids_of(list)
  local ids = {}
  for i, a in ipairs(list) do
    ids[i] = a[1]
  end
  return ids
end

-- rule 16: extension
-- args: now_ms or '', [[id, want_nanos, min_nanos, store epoch or false], …] as JSON. Three values for each element:
-- 'extended', 'refused' (also for a hold that the store lost, which keeps what was granted) or 'forbidden'; granted;
-- total.
local function extend(keys, args)
  local month = month_of(now_us(args[1]))
  local list = cjson.decode(args[2])
  local ids = ids_of(list)
  local held, seen, loaded, writes, out = fetch(keys[PENDING], ids), {}, {}, {}, {}
  local t = load_tenant(keys)
  for i, a in ipairs(list) do
    local h = hold_at(held, i, ids, seen)
    local code, granted, total = 'forbidden', false, false
    if not h and is_lost(keys, a[4]) then
      code = 'refused'
    end
    if h then
      local k = load_key(keys, loaded, h.key_id)
      granted = least(a[2], sub(sub(t.balance, t.settled), t.pending))
      local tenant_left = unspent(month, t, h.tenant_budget)
      if tenant_left then
        granted = least(granted, sub(tenant_left, t.pending))
      end
      local key_left = unspent(month, k, h.key_budget)
      if key_left then
        granted = least(granted, sub(key_left, k.pending))
      end
      if less(granted, a[3]) then
        code, granted = 'refused', false
      else
        code, total = 'extended', add(h.nanos, granted)
        h.nanos = total
        t.pending = add(t.pending, granted)
        k.pending = add(k.pending, granted)
        k.changed = true
        writes[#writes + 1] = ids[i]
        writes[#writes + 1] = pack_hold(h)
      end
    end
    local n = #out
    out[n + 1], out[n + 2], out[n + 3] = code, granted, total
  end
  if #writes > 0 then
    in_parts('HSET', keys[PENDING], writes, 2)
    save_keys(keys, loaded)
    save_tenant(keys, t, 'pending')
  end
  return out
end

-- rule 17: heartbeat
-- args: now_ms or '', lease_ms, [[id, delivered or false, store epoch or false], …] as JSON, delivered =
-- [promptTokens, cachedTokens, completionTokens, costNanos], and of another model than the draft's its members of the
-- event. Renews deadlines and records what was delivered. Returns 1 for each hold that was pending, or that the store
-- lost.
local function progress(keys, args)
  local now_ms = math.floor(now_us(args[1]) / 1000)
  local deadline_ms = now_ms + tonumber(args[2])
  local list = cjson.decode(args[3])
  local ids = ids_of(list)
  local held, seen, writes, out = fetch(keys[PENDING], ids), {}, {}, {}
  for i, a in ipairs(list) do
    local h = hold_at(held, i, ids, seen)
    out[i] = (h or is_lost(keys, a[3])) and 1 or 0
    if h then
      h.deadline_ms, h.progressed_ms = deadline_ms, now_ms
      h.delivered = a[2] and cmsgpack.pack(unpack(a[2])) or h.delivered
      writes[#writes + 1] = ids[i]
      writes[#writes + 1] = pack_hold(h)
    end
  end
  if #writes > 0 then
    in_parts('HSET', keys[PENDING], writes, 2)
    local bounds = redis.call('HMGET', keys[CREDIT], 'deadline_ms', 'progressed_ms')
    -- Only a clock that went back, or a shorter lease, makes a deadline earlier.
    if bounds[1] and bounds[1] ~= '' and deadline_ms < tonumber(bounds[1]) then
      redis.call('HSET', keys[CREDIT], 'deadline_ms', text(deadline_ms))
    end
    if now_ms > tonumber(bounds[2] or 0) then
      redis.call('HSET', keys[CREDIT], 'progressed_ms', text(now_ms))
    end
  end
  return out
end

-- Adds what one end gives back and costs to the sums of the tenant or the key.
local function tally(of, h, end_of, per_minute, month)
  of.changed = true
  of.in_flight = of.in_flight - 1
  of.pending = sub(of.pending, h.nanos)
  -- rule 20: token correction
  of.tokens_by_us = (of.tokens_by_us or 0) + bucket_us(end_of.tokens, per_minute) - bucket_us(h.tokens, per_minute)
  -- rule 19: spent in the month
  -- A sum of a month in the future by this clock continues as this month's. Otherwise it would stay until the clock
  -- gets there, which may be years after a jump.
  if of.month < month then
    of.spent = 0
  end
  of.month = month
  if end_of.cost then
    if end_of.month >= month then
      of.spent = add(of.spent, end_of.cost)
    end
  end
end

-- rule 20: token correction
-- Moves the token bucket by the difference between the actual tokens and those counted at admission: back for unused
-- tokens, forward for additional ones.
local function correct_tokens(of, now)
  if of.tokens_by_us and of.tokens_by_us ~= 0 then
    read_buckets(of, now)
    of.tokens_us = of.tokens_us + of.tokens_by_us
  end
end

-- rule 18: the end of a hold
-- The only place where holds end. Gives back the held amount, the concurrency slot and the difference of tokens.
-- `ends`: { id, cost, tokens, month, record }. With a cost, the hold becomes settled with this record; without one it
-- is removed. `month` is the month in which the request ended: an older month does not count against this month's
-- budget. Two values for each element: 'settled', 'repeated' (and the record in force), 'void', 'over_hold' (nothing
-- changed), 'lost' (the store was emptied since its admission) or 'forbidden'.
local function end_holds(keys, now, ends)
  local ids = {}
  for i, e in ipairs(ends) do
    ids[i] = e.id
  end
  local held, ended, seen, records = fetch(keys[PENDING], ids), fetch(keys[SETTLED], ids), {}, {}
  local t, month, loaded = nil, month_of(now), {}
  local gone, settled, unconfirmed, out = {}, {}, {}, {}
  local now_ms, lengths_ms, lengths_by = math.floor(now / 1000), 0, {}
  for i, e in ipairs(ends) do
    local h = hold_at(held, i, ids, seen)
    local standing = records[e.id]
    if not standing and ended[i] then
      local _, record = cmsgpack.unpack(ended[i])
      standing = record
    end
    local code, record = nil, false
    if standing then
      code, record = e.cost and 'repeated' or 'forbidden', e.cost and standing or false
      if e.cost and ended[i] then
        -- WAIT covers only the writes of its own connection, and a repeat may come on another one than the settlement.
        -- So a repeat writes the settlement again.
        redis.call('HSET', keys[SETTLED], e.id, ended[i])
      end
    elseif not h then
      code = is_lost(keys, e.store_epoch) and 'lost' or 'forbidden'
    elseif e.cost and less(h.nanos, e.cost) then
      code = 'over_hold'
    else
      code = e.cost and 'settled' or 'void'
      t = t or load_tenant(keys)
      tally(t, h, e, h.tenant_tokens_per_minute, month)
      tally(load_key(keys, loaded, h.key_id), h, e, h.key_tokens_per_minute, month)
      seen[e.id] = false
      gone[#gone + 1] = e.id
      lengths_ms = lengths_ms + add_length(lengths_by, h, now_ms)
      if e.cost then
        t.settled = add(t.settled, e.cost)
        records[e.id] = e.record
        settled[#settled + 1] = e.id
        settled[#settled + 1] = cmsgpack.pack(e.cost, e.record)
        unconfirmed[#unconfirmed + 1] = text(now_ms)
        unconfirmed[#unconfirmed + 1] = e.id
      end
    end
    local n = #out
    out[n + 1], out[n + 2] = code, record
  end
  if t then
    in_parts('HDEL', keys[PENDING], gone, 1)
    in_parts('HSET', keys[SETTLED], settled, 2)
    in_parts('ZADD', keys[UNCONFIRMED], unconfirmed, 2)
    t.hold_mean_ms = next_mean_ms(t.hold_mean_ms, math.floor(lengths_ms / #gone))
    t.model_means = next_model_means(t.model_means, lengths_by)
    correct_tokens(t, now)
    for _, k in pairs(loaded) do
      correct_tokens(k, now)
    end
    save_keys(keys, loaded)
    save_tenant(keys, t, 'settled', 'pending', 'in_flight', 'month', 'spent', 'requests_us', 'tokens_us', 'written_us',
      'hold_mean_ms', 'model_means')
  end
  return out
end

-- args: now_ms or '', [[id, cost, tokens, month, store epoch or false, claim id or false], …] as JSON, their records,
-- and if one has a claim: keep_ms, the most characters of answers, and their answers ('': not kept).
local function settle(keys, args)
  local ends = {}
  for i, a in ipairs(cjson.decode(args[2])) do
    ends[i] = {
      id = a[1], cost = a[2], tokens = a[3], month = a[4], store_epoch = a[5], claim = a[6], record = args[2 + i],
    }
  end
  local out = end_holds(keys, now_us(args[1]), ends)
  local from = 2 + #ends
  for i, e in ipairs(ends) do
    if e.claim and out[2 * i - 1] == 'settled' then
      settle_claim(keys, e.claim, e.id, args[from + 2 + i], tonumber(args[from + 1]), tonumber(args[from + 2]))
    end
  end
  return out
end

-- args: now_ms or '', ids. Two values for each element, as end_holds returns them.
local function void(keys, args)
  local ends = {}
  for i = 2, #args do
    ends[i - 1] = { id = args[i], tokens = 0 }
  end
  return end_holds(keys, now_us(args[1]), ends)
end
