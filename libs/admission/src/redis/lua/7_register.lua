-- Names are the library's own, so that several versions exist side by side. Functions that end or release holds, or let
-- running requests continue, must also work when memory is full: they overwrite existing data.
local function register(name, callback, flags)
  redis.register_function({ function_name = LIBRARY .. '_' .. name, callback = callback, flags = flags })
end
register('admit', admit, {})
register('look', look, { 'no-writes' })
register('extend', extend, { 'allow-oom' })
register('progress', progress, { 'allow-oom' })
register('settle', settle, { 'allow-oom' })
register('void', void, { 'allow-oom' })
register('withdraw', withdraw, {})
register('sweep', sweep, { 'allow-oom' })
register('apply_news', apply_balance_updates, { 'allow-oom' })
register('restore', restore, { 'allow-oom' })
register('repair', repair, { 'allow-oom' })
register('snapshot', snapshot, { 'no-writes' })
register('holds', holds, { 'no-writes' })
register('forget_idle', forget_idle, { 'allow-oom' })
