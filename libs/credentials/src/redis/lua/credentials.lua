-- What the gateway must know of each credential: auth's projection. All in one slot, because the order of all changes
-- keeps every process's memory fresh:
--   1 records  hash  credential hash → version and record (JSON)
--   2 changes  zset  credential hash by the number of its last change
--   3 meta     hash  number: of the last change; generation: a token made by the first write into an empty store;
--                    complete, history: the run id, and the replication history, of the server on which auth last
--                    wrote all credentials (two fields, because an earlier release writes and compares the first alone);
--                    filler, filler_until: the filling process, and its lease (ms); ended: the last change whose end
--                    `forget` knows
--   4 ends     zset  hash of a credential that was revoked, or expires, by the time (ms) when it is forgotten
-- A store without `complete` may lack credentials, so nothing is read from it. A store that was complete on another
-- server, or in another history of this one (before a restart, a failover, two of them, a moved slot), serves, and auth
-- writes everything again, because its last moments may be lost.
local RECORDS, CHANGES, META, ENDS = 1, 2, 3, 4
-- How long a credential is remembered after it was revoked or expired, and after it was last written: until every
-- process has read the change, or knows that it has not.
local OVER_MS, WRITTEN_MS = 30 * 86400000, 86400000
-- Records that were read from the books longer ago may predate a revocation that is forgotten here. Half of OVER_MS:
-- the other half is for the difference between the clocks of the two servers.
local MAX_READ_AGE_MS = 15 * 86400000
-- The maximum that one call forgets, and the maximum number of changes whose end it looks up.
local MAX_FORGOTTEN = 200
-- Arguments of one command: Lua's stack holds a few thousand.
local MAX_UNPACKED = 1000

local function now_us()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function run_id()
  return redis.call('INFO', 'server'):match('run_id:(%w+)')
end

-- Each promotion begins a new replication history, so a server that became a replica and was promoted again is another
-- one: its data was replaced meanwhile.
local function history_id()
  return redis.call('INFO', 'replication'):match('master_replid:(%w+)') or ''
end

-- The reply for a reader of a replica, or nil. A former primary may lack all changes since its failover, if it gets
-- none from the new one. The reply makes the client look for the primary, as a refused write does.
local function refused_here()
  local is_replica = redis.call('INFO', 'replication'):find('role:slave', 1, true)
  return is_replica and redis.error_reply('READONLY this server is a replica, and may lack revocations') or nil
end

-- The server, and its replication history. The text means nothing to the caller.
local function server()
  return run_id() .. ':' .. history_id()
end

-- Whether the store was completed on this server in its present history.
local function is_sure(complete, history)
  return complete == run_id() and history == history_id()
end

local function whole(number)
  return string.format('%.0f', number)
end

-- When a credential is forgotten; nil: never.
local function end_of(record, now_ms)
  -- The exact text that every writer produces, so valid credentials, the majority, are not decoded.
  if record:find('"revokedAtMs":null', 1, true) and record:find('"expiresAtMs":null', 1, true) then
    return nil
  end
  local decoded, over_ms = cjson.decode(record), math.huge
  for _, at_ms in ipairs({ decoded.revokedAtMs or false, decoded.expiresAtMs or false }) do
    over_ms = type(at_ms) == 'number' and math.min(over_ms, at_ms) or over_ms
  end
  return over_ms < math.huge and math.max(over_ms + OVER_MS, now_ms + WRITTEN_MS) or nil
end

-- args: the channel, a token in case the store is empty, the writer and its lease (ms), when (ms) the records were read
-- from the books or '', and hash, version, record of each. Keeps records that are newer than the stored ones, each as a
-- separate change. Numbers follow the clock: a change written into an emptied store, or into an older copy, comes after
-- everything that a reader has seen. If the clock was set back, it comes far before, which a reader notices.
local function put(keys, args)
  redis.call('HSETNX', keys[META], 'generation', args[2])
  local now = now_us()
  local now_ms = now / 1000
  if args[5] ~= '' and now_ms - tonumber(args[5]) > MAX_READ_AGE_MS then
    return redis.error_reply('LATE the records were read too long ago')
  end
  if redis.call('HGET', keys[META], 'filler') == args[3] then
    redis.call('HSET', keys[META], 'filler_until', whole(now_ms + args[4]))
  end
  local before = tonumber(redis.call('HGET', keys[META], 'number') or 0)
  local number = math.max(before, now)
  local changed = false
  for i = 6, #args, 3 do
    local hash, version = args[i], tonumber(args[i + 1])
    local packed = redis.call('HGET', keys[RECORDS], hash)
    if not packed or cmsgpack.unpack(packed) < version then
      number, changed = number + 1, true
      redis.call('HSET', keys[RECORDS], hash, cmsgpack.pack(version, args[i + 2]))
      redis.call('ZADD', keys[CHANGES], whole(number), hash)
      local forgotten_ms = end_of(args[i + 2], now_ms)
      if forgotten_ms then
        redis.call('ZADD', keys[ENDS], whole(forgotten_ms), hash)
      else
        redis.call('ZREM', keys[ENDS], hash)
      end
    end
  end
  if changed then
    redis.call('HSET', keys[META], 'number', whole(number))
    -- Says only that something changed. Each process then asks, as it does on its timer. Without the right to publish,
    -- the timer alone must do.
    redis.pcall('PUBLISH', args[1], '')
  end
  return 1
end

local function records_of(keys, hashes)
  local records = {}
  for first = 1, #hashes, MAX_UNPACKED do
    local last = math.min(first + MAX_UNPACKED - 1, #hashes)
    for i, packed in ipairs(redis.call('HMGET', keys[RECORDS], unpack(hashes, first, last))) do
      local record = false
      if packed then
        local _
        _, record = cmsgpack.unpack(packed)
      end
      records[first + i - 1] = record
    end
  end
  return records
end

-- Forgets credentials past their end. They are unknown from now on, and refused as such; `put` prevents that an older
-- version returns. A record of an earlier release has no end yet, and gets one when `ended` passes its change. Returns
-- whether there may be more to do.
local function forget(keys)
  local now_ms = now_us() / 1000
  local ended = redis.call('HGET', keys[META], 'ended') or '0'
  local found =
    redis.call('ZRANGEBYSCORE', keys[CHANGES], '(' .. ended, '+inf', 'WITHSCORES', 'LIMIT', 0, MAX_FORGOTTEN)
  local hashes = {}
  for i = 1, #found, 2 do
    hashes[#hashes + 1] = found[i]
  end
  for i, record in ipairs(records_of(keys, hashes)) do
    local forgotten_ms = record and end_of(record, now_ms)
    if forgotten_ms then
      redis.call('ZADD', keys[ENDS], 'NX', whole(forgotten_ms), hashes[i])
    end
  end
  if #found > 0 then
    redis.call('HSET', keys[META], 'ended', found[#found])
  end
  local over = redis.call('ZRANGEBYSCORE', keys[ENDS], '-inf', whole(now_ms), 'LIMIT', 0, MAX_FORGOTTEN)
  local forgotten = {}
  for i, record in ipairs(records_of(keys, over)) do
    -- An earlier release kept the end of a credential whose expiry was removed.
    if not record or end_of(record, now_ms) then
      forgotten[#forgotten + 1] = over[i]
    end
  end
  if #over > 0 then
    redis.call('ZREM', keys[ENDS], unpack(over))
  end
  if #forgotten > 0 then
    redis.call('HDEL', keys[RECORDS], unpack(forgotten))
    redis.call('ZREM', keys[CHANGES], unpack(forgotten))
  end
  return (#hashes == MAX_FORGOTTEN or #over == MAX_FORGOTTEN) and 1 or 0
end

-- args: '1' to refuse at a replica or '', and hashes. Returns whether the store is complete, and the records (nil for a
-- missing one). Returns no records of an incomplete store: a late writer may have put an older record there than the
-- one that was lost.
local function read(keys, args)
  local refused = args[1] == '1' and refused_here()
  if refused then
    return refused
  end
  if redis.call('HEXISTS', keys[META], 'complete') == 0 then
    return { 0, {} }
  end
  table.remove(args, 1)
  return { 1, records_of(keys, args) }
end

-- args: number of a change, a limit. Returns the generation, whether the store is complete, whether it was completed on
-- this server in its present history, the number of the last change, and the changes after the given one, in order:
-- number and record of each. A replica refuses.
local function changes(keys, args)
  local refused = refused_here()
  if refused then
    return refused
  end
  local generation, complete, history, number =
    unpack(redis.call('HMGET', keys[META], 'generation', 'complete', 'history', 'number'))
  local found = redis.call('ZRANGEBYSCORE', keys[CHANGES], '(' .. args[1], '+inf', 'WITHSCORES', 'LIMIT', 0, args[2])
  local hashes, list = {}, {}
  for i = 1, #found, 2 do
    hashes[#hashes + 1] = found[i]
  end
  for i, record in ipairs(records_of(keys, hashes)) do
    list[2 * i - 1], list[2 * i] = tonumber(found[2 * i]), record
  end
  return { generation or '', complete and 1 or 0, is_sure(complete, history) and 1 or 0, tonumber(number or 0), list }
end

-- args: a token in case the store is empty, the writer, its lease (ms). Auth asks to write all credentials. Returns the
-- generation and the server if it should, and nothing if the store is complete or another process is filling it. Each
-- `put` renews the lease, so a process that died or hangs is replaced.
local function begin_filling(keys, args)
  redis.call('HSETNX', keys[META], 'generation', args[1])
  local generation, complete, history, filler, filler_until =
    unpack(redis.call('HMGET', keys[META], 'generation', 'complete', 'history', 'filler', 'filler_until'))
  local now_ms = now_us() / 1000
  if is_sure(complete, history) or (filler and filler ~= args[2] and tonumber(filler_until) > now_ms) then
    return false
  end
  redis.call('HSET', keys[META], 'filler', args[2], 'filler_until', whole(now_ms + args[3]))
  return { generation, server() }
end

-- args: the generation and the server in which the filling began. All credentials are written. Returns 0 if the store
-- was emptied meanwhile, or if this is another server, which may lack the last writes of the former one. So some of the
-- credentials may be gone again.
local function end_filling(keys, args)
  if redis.call('HGET', keys[META], 'generation') ~= args[1] or server() ~= args[2] then
    return 0
  end
  redis.call('HDEL', keys[META], 'filler', 'filler_until')
  redis.call('HSET', keys[META], 'complete', run_id(), 'history', history_id())
  return 1
end

-- args: the generation. A reader saw later changes than the store has: it is an older copy, to be filled again.
local function not_complete(keys, args)
  if redis.call('HGET', keys[META], 'generation') == args[1] then
    redis.call('HDEL', keys[META], 'complete')
  end
  return 1
end

local function register(name, callback, flags)
  redis.register_function({ function_name = LIBRARY .. '_' .. name, callback = callback, flags = flags })
end
-- A full Redis still accepts revocations, and forgets what is past its end.
register('put', put, { 'allow-oom' })
register('forget', forget, { 'allow-oom' })
register('read', read, { 'no-writes' })
register('changes', changes, { 'no-writes' })
register('begin_filling', begin_filling, {})
register('end_filling', end_filling, {})
register('not_complete', not_complete, { 'allow-oom' })
