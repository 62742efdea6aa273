-- Exact integers of any size. An amount is a Lua number if a double holds it exactly (|n| < 2^53), which is usual, and
-- a decimal string otherwise. So every amount has one representation, and stored and returned values need no
-- conversion.
local SAFE = 9007199254740992
-- Seven digits in a limb: a product of two limbs and all carries stay far below SAFE.
local LIMB_DIGITS = 7
local LIMB = 10000000
local MILLION = 1000000

-- The stored and returned form: digits only, never an exponent.
local function text(amount)
  return type(amount) == 'number' and string.format('%.0f', amount + 0) or amount
end

-- From text or a number; nothing is 0.
local function amount_of(value)
  if not value then
    return 0
  end
  local number = tonumber(value)
  return (number < SAFE and number > -SAFE) and number or value
end

-- Sign and limbs, the least significant limb first.
local function to_limbs(amount)
  local digits = text(amount)
  local negative = digits:sub(1, 1) == '-'
  local first = negative and 2 or 1
  local limbs = {}
  for last = #digits, first, -LIMB_DIGITS do
    limbs[#limbs + 1] = tonumber(digits:sub(math.max(first, last - LIMB_DIGITS + 1), last))
  end
  return negative, limbs
end

local function from_limbs(negative, limbs)
  local top = #limbs
  while top > 0 and limbs[top] == 0 do
    top = top - 1
  end
  if top == 0 then
    return 0
  end
  local parts = { negative and '-' or '', string.format('%d', limbs[top]) }
  for i = top - 1, 1, -1 do
    parts[#parts + 1] = string.format('%07d', limbs[i])
  end
  return amount_of(table.concat(parts))
end

local function compare_limbs(a, b)
  for i = math.max(#a, #b), 1, -1 do
    local x, y = a[i] or 0, b[i] or 0
    if x ~= y then
      return x < y and -1 or 1
    end
  end
  return 0
end

-- a + b, or a − b for sign −1 and a ≥ b.
local function combine_limbs(a, b, sign)
  local out, carry = {}, 0
  for i = 1, math.max(#a, #b) do
    local limb = (a[i] or 0) + sign * (b[i] or 0) + carry
    carry = math.floor(limb / LIMB)
    out[i] = limb - carry * LIMB
  end
  if carry > 0 then
    out[#out + 1] = carry
  end
  return out
end

local function add_signed(a, b, b_sign)
  local a_negative, x = to_limbs(a)
  local b_negative, y = to_limbs(b)
  b_negative = b_negative ~= (b_sign < 0)
  if a_negative == b_negative then
    return from_limbs(a_negative, combine_limbs(x, y, 1))
  end
  if compare_limbs(x, y) >= 0 then
    return from_limbs(a_negative, combine_limbs(x, y, -1))
  end
  return from_limbs(b_negative, combine_limbs(y, x, -1))
end

-- Rounding is monotone: a result below SAFE was not rounded.
local function add(a, b)
  if type(a) == 'number' and type(b) == 'number' then
    local sum = a + b
    if sum < SAFE and sum > -SAFE then
      return sum
    end
  end
  return add_signed(a, b, 1)
end

local function sub(a, b)
  if type(a) == 'number' and type(b) == 'number' then
    local difference = a - b
    if difference < SAFE and difference > -SAFE then
      return difference
    end
  end
  return add_signed(a, b, -1)
end

-- a < b
local function less(a, b)
  if type(a) == 'number' and type(b) == 'number' then
    return a < b
  end
  local difference = add_signed(a, b, -1)
  if type(difference) == 'number' then
    return difference < 0
  end
  return difference:sub(1, 1) == '-'
end

local function least(a, b)
  return less(b, a) and b or a
end

local function most(a, b)
  return less(a, b) and b or a
end

local function mul(a, b)
  if type(a) == 'number' and type(b) == 'number' then
    local product = a * b + 0 -- never -0
    if product < SAFE and product > -SAFE then
      return product
    end
  end
  local a_negative, x = to_limbs(a)
  local b_negative, y = to_limbs(b)
  local out = {}
  for i = 1, #x + #y do
    out[i] = 0
  end
  for i = 1, #x do
    local carry = 0
    for j = 1, #y do
      local limb = out[i + j - 1] + x[i] * y[j] + carry
      carry = math.floor(limb / LIMB)
      out[i + j - 1] = limb - carry * LIMB
    end
    out[i + #y] = carry
  end
  return from_limbs(a_negative ~= b_negative, out)
end

-- a / 1,000,000, rounded up; for a ≥ 0.
local function ceil_million(a)
  if type(a) == 'number' then
    return math.ceil(a / MILLION)
  end
  local _, limbs = to_limbs(a)
  local rest = 0
  for i = #limbs, 1, -1 do
    local part = rest * LIMB + limbs[i]
    limbs[i] = math.floor(part / MILLION)
    rest = part - limbs[i] * MILLION
  end
  local quotient = from_limbs(false, limbs)
  return rest > 0 and add(quotient, 1) or quotient
end

-- How many whole times `price` fits into `left`, at most `want` (a number). Both ≥ 0. The quotient of the doubles is
-- off by one at most, because `want` is far below SAFE.
local function times(left, price, want)
  if price == 0 then
    return want
  end
  local n = math.min(want, math.floor(tonumber(left) / tonumber(price)))
  while n > 0 and less(left, mul(n, price)) do
    n = n - 1
  end
  while n < want and not less(left, mul(n + 1, price)) do
    n = n + 1
  end
  return n
end
