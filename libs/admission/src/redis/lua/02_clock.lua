-- Time. Only tests pass `now_ms`; otherwise the server's clock counts.
local function now_us(now_ms)
  if now_ms ~= '' then
    return tonumber(now_ms) * 1000
  end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- Year, month and day of a day counted from 1970-01-01 (the proleptic Gregorian calendar; years start in March, so that
-- the leap day comes last).
local function civil(days)
  local z = days + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  return yoe + era * 400 + (month <= 2 and 1 or 0), month, doy - math.floor((153 * mp + 2) / 5) + 1
end

-- year × 12 + month − 1, UTC
local function month_of(us)
  local year, month = civil(math.floor(us / 86400000000))
  return year * 12 + month - 1
end

-- ISO 8601, UTC, milliseconds
local function iso_time(ms)
  local days = math.floor(ms / 86400000)
  local year, month, day = civil(days)
  local rest = ms - days * 86400000
  return string.format(
    '%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day,
    math.floor(rest / 3600000), math.floor(rest / 60000) % 60, math.floor(rest / 1000) % 60, rest % 1000)
end

-- args: how many ms from now a `repair` may be reached. Returns the end of that time, in ms by this server's clock.
local function repair_until(_, args)
  return text(now_us('') / 1000 + tonumber(args[1]))
end
