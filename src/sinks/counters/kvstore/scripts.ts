import { createHash } from 'node:crypto';

/**
 * One step on one counter, in Lua; every script begins with it.
 *
 * `step(key, hits, expiry, left, created)` returns the count after it, or the error of this key alone. `hits` is a string, as INCRBY
 * expects it: converting a number took a tenth of the step, as measured. Commands go through `pcall`, because an error that
 * is raised would stop the script half way, with the keys before it counted and their counts not returned.
 *
 * - hits above 0: added. A key without expiry (new, or written by another program), or with one in less than `left` seconds (of a
 *   shorter window, whose limit has the same key), gets `expiry` in seconds. With `created`, which is the hits as a number, only a
 *   key whose count equals it is examined: one that may be new. It saves a command, which is a third of the step.
 * - 0: reads the count; an absent key stays absent and counts 0.
 * - below 0: subtracted, down to 0. The expiry stays; an absent key stays absent.
 *
 * A count saturates at 2^53 − 1: an increment beyond it leaves the key there. A larger value, which another program has written,
 * stays and counts 2^53 − 1. Lua cannot represent such numbers exactly, so an increment beyond is undone, which yields the
 * exact count before it.
 */
const STEP = `
local pcall = redis.pcall
local LARGEST = 9007199254740991
local MINUS = 45
local function saturate(key, hits)
  local before = pcall('DECRBY', key, hits)
  if type(before) == 'number' and before < LARGEST then pcall('INCRBY', key, LARGEST - before) end
  return LARGEST
end
local function step(key, hits, expiry, left, created)
  if hits ~= '0' and string.byte(hits) ~= MINUS then
    local count = pcall('INCRBY', key, hits)
    if type(count) ~= 'number' then
      if not string.find(count.err, 'would overflow', 1, true) then return count end
      count = LARGEST
    elseif count > LARGEST then
      count = saturate(key, hits)
    end
    if not created or count == created then
      local ttl = pcall('TTL', key)
      if type(ttl) == 'number' and ttl < left then pcall('EXPIRE', key, expiry) end
    end
    return count
  end
  local stored = pcall('GET', key)
  if not stored then return 0 end
  if type(stored) == 'table' then return stored end
  if not string.find(stored, '^-?%d+$') then return redis.error_reply('ERR value is not an integer') end
  local count = math.min(tonumber(stored), LARGEST)
  if hits == '0' then return count end
  local taken = math.min(-tonumber(hits), count)
  if taken == 0 then return 0 end
  local left = pcall('DECRBY', key, taken)
  if type(left) == 'number' and left > LARGEST then return LARGEST end
  return left
end
`;

/** A Lua script. */
export interface Script {
  readonly text: string;
  /** The SHA-1 of the text, by which EVALSHA runs a script that the server has loaded. */
  readonly sha: string;
}

function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/**
 * Applies steps in order.
 *
 * - KEYS: the key of each step; a key may occur more than once.
 * - ARGV[1]: a JSON list, one argument because every argument costs the client and the server time. First the exclusive bound of
 *   the random part of expiries, and one such random part, from which that of each key follows. Then five values for each run of
 *   steps that have them in common: the index of its first step, the hits as a string, the expiry in seconds without the random
 *   part, the seconds that are left of the window, and whether existing keys are known to have an expiry (1), so that it need not be
 *   examined.
 * - Result: a list with one value per step: the count after it, or the error of its key.
 * - Atomic, because a key must not be left without expiry between its increment and its EXPIRE, and because subtracting down
 *   to 0 reads and then writes.
 */
export const COUNT = script(`${STEP}
local runs = cjson.decode(ARGV[1])
local jitter, random = runs[1], runs[2]
local counts = {}
for run = 3, #runs, 5 do
  local hits, expiry, left = runs[run + 1], runs[run + 2], runs[run + 3]
  local created = runs[run + 4] == 1 and tonumber(hits)
  for i = runs[run], (runs[run + 5] or #KEYS + 1) - 1 do
    counts[i] = step(KEYS[i], hits, expiry + (random + i * 7919) % jitter, left, created)
  end
end
return counts
`);

/**
 * Applies steps in order, some of them in groups: when any step of a group would exceed its limit, only the steps that
 * exceed theirs are counted, and the others are only read (STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT). Negative hits are always
 * counted, and lower the count on which later steps of their group are judged.
 *
 * - KEYS: the key of each step.
 * - ARGV[1]: a JSON list with five values per step: its hits as a string, the expiry in seconds for a key that has none, the seconds
 *   that are left of its window, its limit, and how many steps from this one on form its group (1: the step is not grouped).
 * - Result: a list with one value per step: the count after it, or the error of its key.
 * - Atomic, because otherwise concurrent calls would all see room below the limit before any of them is counted.
 */
export const GUARDED_COUNT = script(`${STEP}
local steps = cjson.decode(ARGV[1])
local counts = {}
local i = 1
while i <= #KEYS do
  local last = i + steps[5 * i] - 1
  local over = {}
  local any = false
  if last > i then
    local lowered = {}
    for j = i, last do
      local key = KEYS[j]
      local hits = tonumber(steps[5 * j - 4])
      local stored = lowered[key] or step(key, '0')
      if hits < 0 then
        over[j] = true
        if type(stored) == 'number' then lowered[key] = math.max(0, stored + hits) end
      elseif type(stored) == 'number' and stored + hits > steps[5 * j - 1] then
        over[j] = true
        any = true
      end
    end
  end
  for j = i, last do
    local hits = steps[5 * j - 4]
    if any and not over[j] then hits = '0' end
    counts[j] = step(KEYS[j], hits, steps[5 * j - 3], steps[5 * j - 2])
  end
  i = last + 1
end
return counts
`);

/**
 * Token buckets, in Lua. The value of a key is the time at which its bucket is full, in microseconds; where the rate needs it, with parts
 * of one: `<microseconds>:<parts>/<parts of a microsecond>`. It is 0 or absent when that is over.
 *
 * The numbers of a limit are, after its kind: the span from empty to full (microseconds, parts), the parts of a microsecond, the lifetime
 * in milliseconds, whether existing keys are known to live long enough (1), what all calls take together as a text, if it may be taken at
 * once, and for each call what it takes (microseconds, negative if it is given back, and parts). The state is how long the bucket takes to
 * be full (microseconds, parts).
 *
 * A key that is full later than in its span is cut to it, because a clock that has gone back would otherwise close it for as long.
 * INCRBY keeps the expiry, and costs half of a SET. It is set again by the first operation on a key in ten seconds of a caller.
 */
const BUCKET = `
local function undo(key, hits, left)
  if left == 0 then pcall('DEL', key) else pcall('DECRBY', key, hits) end
end
local function readBucket(i, limit)
  local key, total = KEYS[i], limit[7]
  if total ~= 0 then
    local full = pcall('INCRBY', key, total)
    if type(full) == 'number' then
      local whole = full - total - now
      if whole < 0 and full - total ~= 0 then
        pcall('INCRBY', key, format('%.0f', -whole))
        whole = 0
      end
      if whole >= 0 and whole + total <= limit[2] then return nil, whole, 0, true, DONE end
      undo(key, total, full - total)
      if whole >= 0 and whole <= limit[2] then return nil, whole, 0, true, ADD end
    end
  end
  local stored = pcall('GET', key)
  if type(stored) == 'table' then return stored end
  local spanWhole, spanPart, parts = limit[2], limit[3], limit[4]
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
  return nil, whole, part, stored, plain and parts == 1 and limit[6] == 1 and ADD
end
local function takeFromBucket(whole, part, limit, c)
  local taken = limit[6 + 2 * c]
  whole, part = whole + taken, part + limit[7 + 2 * c]
  if part >= limit[4] then whole, part = whole + 1, part - limit[4] end
  if whole < 0 then return 0, 0 end
  if taken < 0 or whole < limit[2] or (whole == limit[2] and part <= limit[3]) then return whole, part end
end
local function writeBucket(i, limit, whole, part, wholeBefore, partBefore, stored, how)
  if whole == wholeBefore and part == partBefore and how ~= CUT then
    return stored and limit[6] == 0 and pcall('PEXPIRE', KEYS[i], limit[5])
  end
  if how == ADD then return pcall('INCRBY', KEYS[i], format('%.0f', whole - wholeBefore)) end
  local value = format('%.0f', now + whole)
  if part > 0 then value = format('%s:%.0f/%.0f', value, part, limit[4]) end
  return pcall('SET', KEYS[i], value, 'PX', limit[5])
end
`;

/**
 * Sliding windows, in Lua. Each counter has a key for the windows of the clock with an even number and one for those with an odd number,
 * so that one has the current window and the other the one before. Their values are the number of the window, in its last digits only,
 * times 2^32, plus its hits: what is left of older windows does not count.
 *
 * The numbers of a limit are, after its kind: the limit, the length of the window and the lifetime of keys in milliseconds, the sum of hits
 * as above, and the hits of each call. The state is the hits of the window before, and of the current one.
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
  return math.ceil(previous * (limit[3] - clock % limit[3]) / limit[3]) + current + hits
end
local function readWindows(i, limit)
  local at = math.floor(clock / limit[3])
  local key, total = KEYS[i + at % 2], limit[5]
  local previous, err = hitsIn(KEYS[i + 1 - at % 2], (at - 1) % NUMBERS + 1)
  if not previous then return err end
  if total ~= 0 then
    local value = pcall('INCRBY', key, total)
    if type(value) == 'number' then
      local current = value - total - (at % NUMBERS + 1) * HITS
      local exists = current >= 0 and current < HITS
      if exists and hitsAfter(previous, current, limit, total) <= limit[2] then return nil, previous, current, true, DONE end
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
  if hitsAfter(previous, current, limit, hits) <= limit[2] then return previous, current + hits end
end
local function writeWindows(i, limit, previous, current, previousBefore, currentBefore, exists)
  local at = math.floor(clock / limit[3])
  local reply
  if current ~= currentBefore then
    local key = KEYS[i + at % 2]
    if exists then
      reply = pcall('INCRBY', key, format('%.0f', current - currentBefore))
    else
      reply = pcall('SET', key, format('%.0f', (at % NUMBERS + 1) * HITS + current), 'PX', limit[4])
    end
  end
  if previous == previousBefore or failed(reply) then return reply end
  return pcall('INCRBY', KEYS[i + 1 - at % 2], format('%.0f', previous - previousBefore))
end
`;

/**
 * Fixed windows of limits that are decided together with others, in Lua. The value of a key is its hits.
 *
 * The numbers of a limit are, after its kind: the limit, the expiry in seconds for a key that has none, the seconds that are left of the
 * window, whether existing keys are known to have an expiry (1), the sum of hits as above, and the hits of each call. The state is 0, and the hits.
 */
const FIXED = `
local function readWindow(i, limit)
  local key, total = KEYS[i], limit[6]
  if total ~= 0 then
    local after = pcall('INCRBY', key, total)
    if type(after) == 'number' then
      local count = after - total
      if count >= 0 and after <= limit[2] then
        if count == 0 or limit[5] == 0 then
          local ttl = pcall('TTL', key)
          if type(ttl) == 'number' and ttl < limit[4] then pcall('EXPIRE', key, limit[3]) end
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
  if limit[6 + c] <= 0 or sum <= limit[2] then return 0, sum end
end
local function writeWindow(i, limit, _, count, _, before)
  local hits = count - before
  if hits ~= 0 then return step(KEYS[i], format('%.0f', hits), limit[3], limit[4], limit[5] == 1 and hits) end
end
`;

/**
 * Decides calls by limits that have algorithms; of a rule with `all_or_nothing`, by all of its limits.
 *
 * - KEYS: one for each limit, of a sliding window two; a key may occur more than once.
 * - ARGV[1]: a JSON list. First the time in Unix microseconds, 0 for that of the server: then the clocks of its callers do not matter; a test
 *   sends another. Then a list for each run of steps that have it in common: how many they are, a list of how many equal calls follow each
 *   other, and for each limit of a step a list: its kind (1 to 3), and its numbers, which are described above.
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
  if kind == 2 then key = key + math.floor(clock / limit[3]) % 2 end
  local total = limit[kind == 1 and 7 or kind == 2 and 5 or 6]
  undo(KEYS[key], total, kind == 3 and second)
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

/**
 * Changes a reservation: its record, its counters, and the lists of the open reservations of these, which are sorted sets by the time at
 * which they expire, in Unix milliseconds.
 *
 * - KEYS: the record, then for each step its counter and the list of the counter.
 * - ARGV[1]: the record as it must be, empty for none. ARGV[2]: the new one.
 * - ARGV[3]: a JSON list: the time, the lifetime of the record in milliseconds, most members of a list, when the reservation expires that
 *   is opened (0: none is), whether it is denied in any case (1). All but the last two are texts. Then seven values for each step: the hits
 *   as a text, the expiry in seconds for a counter that has none, the seconds that are left of its window, its limit, whether it denies
 *   when it is over (0: never, 1: alone, 2: together with all such steps), its member of the list (empty: none), the lifetime of the list
 *   in seconds.
 * - Result: a list with `done` or `denied` and a count for each step, `full`, `expired`, or `changed` and the record; or the error of a key.
 * - Atomic: what is reserved must not be counted by others in between, and a reservation ends once.
 *
 * Members that have expired are removed before a reservation is opened; the hits of those that begin with `c` are subtracted. The record is
 * written before the counters: a server without memory rejects the first write of a script, and none after it.
 */
export const RESERVATION = script(`${STEP}
local record = pcall('GET', KEYS[1])
if type(record) == 'table' then return record end
if (record or '') ~= ARGV[1] then return { 'changed', record or '' } end
local change = cjson.decode(ARGV[3])
local now, lifetime, most, expires, anyway = change[1], change[2], change[3], change[4], change[5]
local opens = expires ~= 0
local FIRST = 5
local function of(i, n) return change[FIRST + 7 * (i - 1) + n] end
local steps = (#change - FIRST) / 7
if not opens then
  for i = 1, steps do
    if of(i, 6) ~= '' then
      local score = pcall('ZSCORE', KEYS[2 * i + 1], of(i, 6))
      if type(score) == 'table' then return score end
      if not score then return { 'expired' } end
    end
  end
else
  for i = 1, steps do
    local ended = pcall('ZRANGEBYSCORE', KEYS[2 * i + 1], '-inf', now)
    if ended.err then return ended end
    local hits = 0
    for _, member in ipairs(ended) do hits = hits + (tonumber(string.match(member, '^c(%d+)')) or 0) end
    if hits > 0 then
      local left = step(KEYS[2 * i], string.format('-%.0f', math.min(hits, LARGEST)))
      if type(left) == 'table' then return left end
    end
    if #ended > 0 then pcall('ZREMRANGEBYSCORE', KEYS[2 * i + 1], '-inf', now) end
    if pcall('ZCARD', KEYS[2 * i + 1]) >= tonumber(most) then return { 'full' } end
  end
end
local counts, sums, denied, together, over = {}, {}, anyway == 1, 0, 0
for i = 1, steps do
  local key, hits = KEYS[2 * i], tonumber(of(i, 1))
  local before = sums[key] or step(key, '0')
  if type(before) == 'table' then return before end
  local sum = math.max(0, math.min(LARGEST, before + hits))
  sums[key] = sum
  counts[i] = { before, sum }
  if of(i, 5) == 2 then together = together + 1 end
  if sum > of(i, 4) then
    if of(i, 5) == 1 then denied = true elseif of(i, 5) == 2 then over = over + 1 end
  end
end
denied = opens and (denied or (together > 0 and over == together))
local reply, texts = { denied and 'denied' or 'done' }, {}
for i = 1, steps do
  local count = counts[i][2]
  if denied and count <= of(i, 4) then count = counts[i][1] end
  reply[i + 1], texts[i] = count, string.format('%.0f', count)
end
if denied then return reply end
local after = ARGV[2]
if opens then after = after .. '\\n' .. table.concat(texts, ',') end
local written = pcall('SET', KEYS[1], after, 'PX', lifetime)
if written.err then return written end
for i = 1, steps do
  local list, member = KEYS[2 * i + 1], of(i, 6)
  if of(i, 1) ~= '0' then step(KEYS[2 * i], of(i, 1), of(i, 2), of(i, 3)) end
  if opens then
    pcall('ZADD', list, expires, member)
    if pcall('TTL', list) < of(i, 7) then pcall('EXPIRE', list, of(i, 7)) end
  elseif member ~= '' then
    pcall('ZREM', list, member)
  end
end
return reply
`);
