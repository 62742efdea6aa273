-- What the edge must know of each credential: auth's projection. All in one slot, as the order of all changes is what keeps every process's memory young:
--   1 records  hash  credential hash → version and record (JSON)
--   2 changes  zset  credential hash by the number of its last change
--   3 meta     hash  number: of the last change; filled: a token, made when auth has written all credentials; filling:<token>: auth is at it
local RECORDS, CHANGES, META = 1, 2, 3
-- Arguments of one command: Lua's stack bears a few thousand.
local MAX_UNPACKED = 1000

-- args: the channel, and hash, version, record of each. Keeps those that are newer than what is there, each as a change of its own.
local function put(keys, args)
  local before = tonumber(redis.call('HGET', keys[META], 'number') or 0)
  local number = before
  for i = 2, #args, 3 do
    local hash, version = args[i], tonumber(args[i + 1])
    local packed = redis.call('HGET', keys[RECORDS], hash)
    if not packed or cmsgpack.unpack(packed) < version then
      number = number + 1
      redis.call('HSET', keys[RECORDS], hash, cmsgpack.pack(version, args[i + 2]))
      redis.call('ZADD', keys[CHANGES], string.format('%.0f', number), hash)
    end
  end
  if number > before then
    redis.call('HSET', keys[META], 'number', string.format('%.0f', number))
    -- It says only that something changed; each process asks, as it does on its timer. Without the right to publish that must do.
    redis.pcall('PUBLISH', args[1], '')
  end
  return number
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

-- args: hashes. Whether the store is filled, and the records (nil where there is none).
local function read(keys, args)
  local filled = redis.call('HEXISTS', keys[META], 'filled')
  return { filled, records_of(keys, args) }
end

-- args: number of a change, at most so many. The number of the last change, the token of the filling, and what was changed after that change, in order: number and record of each.
local function changes(keys, args)
  local meta = redis.call('HMGET', keys[META], 'number', 'filled')
  local found = redis.call('ZRANGEBYSCORE', keys[CHANGES], '(' .. args[1], '+inf', 'WITHSCORES', 'LIMIT', 0, args[2])
  local hashes, list = {}, {}
  for i = 1, #found, 2 do
    hashes[#hashes + 1] = found[i]
  end
  for i, record in ipairs(records_of(keys, hashes)) do
    list[2 * i - 1], list[2 * i] = tonumber(found[2 * i]), record
  end
  return { tonumber(meta[1] or 0), meta[2] or '', list }
end

-- args: a token. Auth begins to write all credentials.
local function begin_filling(keys, args)
  redis.call('HSET', keys[META], 'filling:' .. args[1], '1')
  return 1
end

-- args: the token. All are written. 0: the store was emptied meanwhile, so some of them are gone again.
local function end_filling(keys, args)
  if redis.call('HDEL', keys[META], 'filling:' .. args[1]) == 0 then
    return 0
  end
  redis.call('HSETNX', keys[META], 'filled', args[1])
  -- Others that are at it, or died of it, are not needed any more.
  for _, field in ipairs(redis.call('HKEYS', keys[META])) do
    if field:sub(1, 8) == 'filling:' then
      redis.call('HDEL', keys[META], field)
    end
  end
  return 1
end

-- args: the token under which the store was filled. Somebody saw later changes than there are: it is an older copy, to be filled again.
local function not_filled(keys, args)
  if redis.call('HGET', keys[META], 'filled') == args[1] then
    redis.call('HDEL', keys[META], 'filled')
  end
  return 1
end

local function register(name, callback, flags)
  redis.register_function({ function_name = LIBRARY .. '_' .. name, callback = callback, flags = flags })
end
register('put', put, {})
register('read', read, { 'no-writes' })
register('changes', changes, { 'no-writes' })
register('begin_filling', begin_filling, {})
register('end_filling', end_filling, {})
register('not_filled', not_filled, { 'allow-oom' })
