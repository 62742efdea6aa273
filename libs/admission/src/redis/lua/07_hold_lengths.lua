-- How long a tenant's holds last, and when the running ones are expected to end.

-- The longest length that counts. Without it, a jump of the clock would distort the mean of the next hundred holds.
local LONGEST_HOLD_MS = 3600000

-- rule 21: mean length of holds
-- The holds that end in one call together weigh an eighth, with the mean of their lengths.
local function next_mean_ms(mean_ms, length_ms)
  return mean_ms == 0 and length_ms or math.floor((mean_ms * 7 + length_ms) / 8)
end

-- The means of the models that ended last, in one field: { model, mean, model, mean, … }, the newest first.
local MAX_MODELS = 16

-- From the draft, without reading all of it: no member before its model has members of its own, and quotation marks
-- inside a string are escaped. Plain searches, because a pattern is tried at every character.
local MODEL = '"model":"'
local function model_of(h)
  local _, before = h.draft:find(MODEL, 1, true)
  local after = before and h.draft:find('"', before + 1, true)
  return after and h.draft:sub(before + 1, after - 1)
end

-- Unreadable means are none.
local function read_model_means(packed)
  local ok, list = pcall(cmsgpack.unpack, packed or '')
  return packed and ok and type(list) == 'table' and list or {}
end

-- Notes that a hold ends, in `lengths_by` under its model. Returns its length.
local function add_length(lengths_by, h, now_ms)
  -- A hold of an older version of this library has no time of admission: its length counts as zero.
  local length_ms = math.min(LONGEST_HOLD_MS, math.max(0, now_ms - (h.admitted_ms or now_ms)))
  local model = model_of(h)
  if model then
    local of = lengths_by[model] or { ms = 0, count = 0 }
    of.ms, of.count = of.ms + length_ms, of.count + 1
    lengths_by[model] = of
  end
  return length_ms
end

-- `next_mean_ms` for each model that ended in this call, in the order of their names.
local function next_model_means(packed, lengths_by)
  local list = read_model_means(packed)
  local first = next(lengths_by)
  -- One model, as most calls have, and the newest already.
  if first and first == list[1] and not next(lengths_by, first) then
    list[2] = next_mean_ms(tonumber(list[2]) or 0, math.floor(lengths_by[first].ms / lengths_by[first].count))
    return cmsgpack.pack(list)
  end
  local ended = {}
  for model in pairs(lengths_by) do
    ended[#ended + 1] = model
  end
  table.sort(ended)
  for _, model in ipairs(ended) do
    local mean_ms = 0
    for i = 1, #list, 2 do
      if list[i] == model then
        mean_ms = tonumber(list[i + 1]) or 0
        table.remove(list, i)
        table.remove(list, i)
        break
      end
    end
    table.insert(list, 1, next_mean_ms(mean_ms, math.floor(lengths_by[model].ms / lengths_by[model].count)))
    table.insert(list, 1, model)
  end
  for i = #list, 2 * MAX_MODELS + 1, -1 do
    list[i] = nil
  end
  return cmsgpack.pack(list)
end

-- For tenants with more running requests, no estimate is read: their mean length divided by their number is as good.
local MAX_RUNNING = 512

-- rule 34: expected ends
-- When the first running request of each of the tenant's keys is expected to end: after the mean length of its model.
-- An overdue request is expected to run for the time by which it is overdue. args: now_ms or ''. Returns key id and
-- milliseconds, for each key with such a request.
local function expected_ends(keys, args)
  local list = read_model_means(redis.call('HGET', keys[CREDIT], 'model_means'))
  local running = redis.call('HLEN', keys[PENDING])
  if #list == 0 or running == 0 or running > MAX_RUNNING then
    return {}
  end
  local now_ms, means, soonest, out = math.floor(now_us(args[1]) / 1000), {}, {}, {}
  for i = 1, #list, 2 do
    means[list[i]] = tonumber(list[i + 1])
  end
  for _, packed in ipairs(redis.call('HVALS', keys[PENDING])) do
    local h = unpack_hold(packed)
    local model = model_of(h)
    local mean_ms = model and means[model]
    if mean_ms and h.admitted_ms then
      local left_ms = math.abs(mean_ms - math.max(0, now_ms - h.admitted_ms))
      soonest[h.key_id] = math.min(soonest[h.key_id] or left_ms, left_ms)
    end
  end
  for key_id, left_ms in pairs(soonest) do
    out[#out + 1] = key_id
    out[#out + 1] = left_ms
  end
  return out
end
