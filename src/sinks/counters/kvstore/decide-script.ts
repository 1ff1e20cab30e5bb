import { STEP, script } from './scripts';

/**
 * Token buckets, in Lua. The value of a key is the time at which its bucket is full, in microseconds; where the rate needs it, with parts
 * of one: `<microseconds>:<parts>/<parts of a microsecond>`. It is 0 or absent when that is over.
 *
 * The numbers of a limit are: the span from empty to full (microseconds, parts), the parts of a microsecond, the lifetime in milliseconds,
 * whether existing keys are known to live long enough (1), and for each call what it takes (microseconds, negative if it is given back, and
 * parts). The state is how long the bucket takes to be full (microseconds, parts).
 *
 * A key that is full later than in its span is cut to it, because a clock that has gone back would otherwise close it for as long.
 * INCRBY keeps the expiry, and costs half of a SET. It is set again by the first operation on a key in ten seconds of a caller.
 */
const BUCKET = `
local function undo(key, hits, left)
  if left == 0 then pcall('DEL', key) else pcall('DECRBY', key, hits) end
end
local function readBucket(i, limit)
  local key, total = KEYS[i], limit[2]
  if total ~= 0 then
    local full = pcall('INCRBY', key, total)
    if type(full) == 'number' then
      local whole = full - total - now
      if whole < 0 and full - total ~= 0 then
        pcall('INCRBY', key, format('%.0f', -whole))
        whole = 0
      end
      if whole >= 0 and whole + total <= limit[3] then return nil, whole, 0, true, DONE end
      undo(key, total, full - total)
      if whole >= 0 and whole <= limit[3] then return nil, whole, 0, true, ADD end
    end
  end
  local stored = pcall('GET', key)
  if type(stored) == 'table' then return stored end
  local spanWhole, spanPart, parts = limit[3], limit[4], limit[5]
  local full, part, plain = stored and number(stored) or 0, 0, true
  if stored and not number(stored) then
    local text, rest, of = string.match(stored, '^(%d+):(%d+)/(%d+)$')
    full, part, plain = number(text), tonumber(rest), false
    if not full then return redis.error_reply('ERR value is not an integer') end
    if tonumber(of) ~= parts then full, part = full + 1, 0 end
  end
  local whole = full - now
  if whole < 0 then return nil, 0, 0, stored end
  if whole > spanWhole or (whole == spanWhole and part > spanPart) then return nil, spanWhole, spanPart, stored, CUT end
  return nil, whole, part, stored, plain and parts == 1 and limit[7] == 1 and ADD
end
local function takeFromBucket(whole, part, limit, c)
  local taken = limit[6 + 2 * c]
  whole, part = whole + taken, part + limit[7 + 2 * c]
  if part >= limit[5] then whole, part = whole + 1, part - limit[5] end
  if whole < 0 then return 0, 0 end
  if taken < 0 or whole < limit[3] or (whole == limit[3] and part <= limit[4]) then return whole, part end
end
local function writeBucket(i, limit, whole, part, wholeBefore, partBefore, stored, how)
  if whole == wholeBefore and part == partBefore and how ~= CUT then
    return stored and limit[7] == 0 and pcall('PEXPIRE', KEYS[i], limit[6])
  end
  if how == ADD then return pcall('INCRBY', KEYS[i], format('%.0f', whole - wholeBefore)) end
  local value = format('%.0f', now + whole)
  if part > 0 then value = format('%s:%.0f/%.0f', value, part, limit[5]) end
  return pcall('SET', KEYS[i], value, 'PX', limit[6])
end
`;

/**
 * Sliding windows, in Lua. Each counter has a key for the windows of the clock with an even number and one for those with an odd number,
 * so that one has the current window and the other the one before. Their values are the number of the window, in its last digits only,
 * times 2^32, plus its hits: what is left of older windows does not count.
 *
 * The numbers of a limit are: the limit, the length of the window and the lifetime of keys in milliseconds, and the hits of each call. The state is the hits of the window before, and of the current one.
 */
const SLIDING = `
local HITS = 4294967296
local NUMBERS = 2097151
local clock = math.floor(now / 1000)
local function hitsIn(key, tag)
  local stored = pcall('GET', key)
  if not stored then return 0, false end
  if type(stored) == 'table' then return nil, stored end
  local value = number(stored)
  if not value then return nil, redis.error_reply('ERR value is not an integer') end
  local hits = value % HITS
  if value - hits ~= tag * HITS then return 0, false end
  return hits, true
end
local function hitsAfter(previous, current, limit, hits)
  return math.ceil(previous * (limit[4] - clock % limit[4]) / limit[4]) + current + hits
end
local function readWindows(i, limit)
  local at = math.floor(clock / limit[4])
  local key, total = KEYS[i + at % 2], limit[2]
  local previous, err = hitsIn(KEYS[i + 1 - at % 2], (at - 1) % NUMBERS + 1)
  if not previous then return err end
  if total ~= 0 then
    local value = pcall('INCRBY', key, total)
    if type(value) == 'number' then
      local current = value - total - (at % NUMBERS + 1) * HITS
      local exists = current >= 0 and current < HITS
      if exists and hitsAfter(previous, current, limit, total) <= limit[3] then return nil, previous, current, true, DONE end
      undo(key, total, value - total)
      if exists then return nil, previous, current, true end
    end
  end
  local current, exists = hitsIn(key, at % NUMBERS + 1)
  if not current then return exists end
  return nil, previous, current, exists
end
local function takeFromWindows(previous, current, limit, c)
  local hits = limit[5 + c]
  if hits < 0 then
    local left = current + hits
    return math.max(0, previous + math.min(0, left)), math.max(0, left)
  end
  if hitsAfter(previous, current, limit, hits) <= limit[3] then return previous, current + hits end
end
local function writeWindows(i, limit, previous, current, previousBefore, currentBefore, exists)
  local at = math.floor(clock / limit[4])
  local reply
  if current ~= currentBefore then
    local key = KEYS[i + at % 2]
    if exists then
      reply = pcall('INCRBY', key, format('%.0f', current - currentBefore))
    else
      reply = pcall('SET', key, format('%.0f', (at % NUMBERS + 1) * HITS + current), 'PX', limit[5])
    end
  end
  if previous == previousBefore or failed(reply) then return reply end
  return pcall('INCRBY', KEYS[i + 1 - at % 2], format('%.0f', previous - previousBefore))
end
`;

/**
 * Fixed windows of limits that are decided together with others, in Lua. The value of a key is its hits.
 *
 * The numbers of a limit are: the limit, the expiry in seconds for a key that has none, the seconds that are left of the window, whether
 * existing keys are known to have an expiry (1), and the hits of each call. The state is 0, and the hits.
 */
const FIXED = `
local function readWindow(i, limit)
  local key, total = KEYS[i], limit[2]
  if total ~= 0 then
    local after = pcall('INCRBY', key, total)
    if type(after) == 'number' then
      local count = after - total
      if count >= 0 and after <= limit[3] then
        if count == 0 or limit[6] == 0 then
          local ttl = pcall('TTL', key)
          if type(ttl) == 'number' and ttl < limit[5] then pcall('EXPIRE', key, limit[4]) end
        end
        return nil, 0, count, true, DONE
      end
      undo(key, total, count)
    end
  end
  local count = step(key, '0')
  if type(count) == 'table' then return count end
  return nil, 0, count
end
local function takeFromWindow(_, count, limit, c)
  local sum = math.max(0, count + limit[6 + c])
  if limit[6 + c] <= 0 or sum <= limit[3] then return 0, sum end
end
local function writeWindow(i, limit, _, count, _, before)
  local hits = count - before
  if hits ~= 0 then return step(KEYS[i], format('%.0f', hits), limit[4], limit[5], limit[6] == 1 and hits) end
end
`;

/**
 * Decides calls by limits that have algorithms; of a rule with `all_or_nothing`, by all of its limits.
 *
 * - KEYS: one for each limit, of a sliding window two; a key may occur more than once.
 * - ARGV[1]: a JSON list. First the time in Unix microseconds, 0 for that of the server: then the clocks of its callers do not matter; a test
 *   sends another. Then a list for each run of steps that have it in common: how many they are, a list of how many equal calls follow each
 *   other, and for each limit of a step a list: its kind (1 to 3), what all calls take together, as a text,
 *   if it may be taken at once (0: it may not), and its numbers, which are described above.
 * - Result: a list with the time, and for each limit two values: its state before the calls, or the error of a key of its step and 0. The
 *   caller decides each call again, as here.
 * - Atomic, because a call that is denied must not change anything, and one that is allowed must be the only one to take its tokens.
 *
 * What all calls take is added first where that may be enough, and taken back where it is too much: a key that is in use then costs one
 * command. Texts are made of numbers by `%.0f`, because Lua's own conversion has 14 digits.
 */
export const DECIDE = script(`${STEP}
local format = string.format
local runs = cjson.decode(ARGV[1])
local now = runs[1]
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
-- How a state was read: INCRBY has added all of the calls; or may add, as the key has an expiry; or it was cut.
local DONE, ADD, CUT = 1, 2, 3
local function number(stored)
  local value = tonumber(stored)
  if value and value >= 0 and value <= LARGEST then return value end
end
local function failed(reply)
  return type(reply) == 'table' and reply.err and reply
end
${BUCKET}${SLIDING}${FIXED}
local read = { readBucket, readWindows, readWindow }
local take = { takeFromBucket, takeFromWindows, takeFromWindow }
local write = { writeBucket, writeWindows, writeWindow }
local keysOf = { 1, 2, 1 }
local results, count, used = { now }, 1, 0
local function result(one, other)
  results[count + 1], results[count + 2] = one, other
  count = count + 2
end
-- The usual step, without the tables of the other one.
local function decideOne(limit, calls)
  local kind, key = limit[1], used + 1
  used = used + keysOf[kind]
  local err, first, second, stored, how = read[kind](key, limit)
  if err then return result(err, 0) end
  if how == DONE then return result(first, second) end
  local x, y, take = first, second, take[kind]
  for c = 1, #calls do
    for _ = 1, calls[c] do
      local nextX, nextY = take(x, y, limit, c)
      if not nextX then break end
      x, y = nextX, nextY
    end
  end
  err = failed(write[kind](key, limit, x, y, first, second, stored, how))
  if err then return result(err, 0) end
  result(first, second)
end
local function takeBack(key, limit, second)
  local kind = limit[1]
  if kind == 2 then key = key + math.floor(clock / limit[4]) % 2 end
  undo(KEYS[key], limit[2], kind == 3 and second)
end
local function decideAll(run, calls)
  local before, states, keys, isDone, err = {}, {}, {}, true, nil
  for l = 3, #run do
    local kind = run[l][1]
    keys[l], used = used + 1, used + keysOf[kind]
    local failure, first, second, stored, how = read[kind](keys[l], run[l])
    err = err or failure
    isDone = isDone and how == DONE
    before[l], states[l] = { first, second, stored, how }, { first, second }
  end
  for l = 3, #run do
    if not isDone and before[l][4] == DONE then
      takeBack(keys[l], run[l], before[l][2])
      before[l][4] = ADD
    end
  end
  for c = 1, (err or isDone) and 0 or #calls do
    for _ = 1, calls[c] do
      local after = {}
      for l = 3, #run do
        local x, y = take[run[l][1]](states[l][1], states[l][2], run[l], c)
        if not x then after = nil break end
        after[l] = { x, y }
      end
      if not after then break end
      states = after
    end
  end
  for l = 3, (err or isDone) and 0 or #run do
    local first, second, stored, how = unpack(before[l], 1, 4)
    err = err or failed(write[run[l][1]](keys[l], run[l], states[l][1], states[l][2], first, second, stored, how))
  end
  for l = 3, #run do result(err or before[l][1], err and 0 or before[l][2]) end
end
for r = 2, #runs do
  local run = runs[r]
  local calls, only = run[2], #run == 3 and run[3]
  for _ = 1, run[1] do
    if only then decideOne(only, calls) else decideAll(run, calls) end
  end
end
return results
`);
