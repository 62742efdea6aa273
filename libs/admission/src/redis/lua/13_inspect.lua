-- Reads a tenant's state for reconcile and for the operator, and changes nothing.

-- PostgreSQL stores no NUL in a text, so the books have no such id, and cannot be asked for it.
local function is_storable(id)
  return not id:find('\0', 1, true)
end

local function assert_storable(id)
  if not is_storable(id) then
    error('a hold whose id the books cannot have')
  end
end

local function read_snapshot(keys)
  local t = load_tenant(keys)
  if not t.exists and redis.call('EXISTS', keys[PENDING], keys[SETTLED]) == 0 then
    return false
  end
  local pending, settled, pending_holds, settled_holds, oldest = 0, 0, 0, 0, false
  local running = redis.call('HGETALL', keys[PENDING])
  for i = 1, #running, 2 do
    assert_storable(running[i])
    local h = unpack_hold(running[i + 1])
    -- No sweep of the tenant could end without them.
    if type(h.deadline_ms) ~= 'number' or type(h.progressed_ms) ~= 'number' then
      error('a pending hold without a time')
    end
    pending_holds = pending_holds + 1
    pending = add(pending, h.nanos)
  end
  local all = redis.call('HGETALL', keys[SETTLED])
  for i = 1, #all, 2 do
    assert_storable(all[i])
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
      if fields[i] > args[2] and is_storable(fields[i]) then
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
      nanos, since = h.nanos, text(tonumber(h.progressed_ms) or 0)
      if args[4] == '1' then
        draft, delivered = h.draft, h.delivered and '{' .. delivered_members(h) .. '}' or ''
      end
    else
      local record
      nanos, record = cmsgpack.unpack(packed)
      since = type(record) == 'string' and record or ''
    end
    for _, value in ipairs({ ids[n], state, text(nanos), since, draft, delivered }) do
      out[#out + 1] = value
    end
  end
  return out
end
