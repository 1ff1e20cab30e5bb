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
export const STEP = `
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

export function script(text: string): Script {
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
 *   that are left of its window, its limit, and how many steps from this one on form its group (1: the step is not grouped), negative when
 *   the group is over in any case.
 * - Result: a list with one value per step: the count after it, or the error of its key.
 * - Atomic, because otherwise concurrent calls would all see room below the limit before any of them is counted.
 */
export const GUARDED_COUNT = script(`${STEP}
local steps = cjson.decode(ARGV[1])
local counts = {}
local i = 1
while i <= #KEYS do
  local size = steps[5 * i]
  local last = i + math.abs(size) - 1
  local over = {}
  local any = size < 0
  if any or last > i then
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
 * Changes a reservation: its record, its counters, and the lists of the open reservations of these, which are sorted sets by the time at
 * which they expire, in Unix milliseconds.
 *
 * - KEYS: the record, then for each step its counter and the list of the counter.
 * - ARGV[1]: the record as it must be, empty for none. ARGV[2]: the new one, empty for none.
 * - ARGV[3]: a JSON list: the time, the lifetime of the record in milliseconds, most members of a list, when the reservation expires that
 *   is opened (0: none is), whether it is denied in any case (1), most members that expire in each list. The first four are texts. Then seven
 *   values for each step: the hits as a text, the expiry in seconds for a counter that has none, the seconds that are left of its window,
 *   its limit, whether it denies when it is over (0: never, 1: alone, 2: together with all such steps), its member of the list (empty: none),
 *   the lifetime of the list in seconds.
 * - Result: a list with `done` or `denied` and for each step a count and by how much it was changed, `full`, `expired`, or `changed` and the
 *   record; or the error of a key.
 * - Atomic: what is reserved must not be counted by others in between, and a reservation ends once.
 *
 * A member begins with `c` or `s`, and is entered with what was added to the counter after that. Members that have expired are removed before
 * a reservation is opened; what those with `c` have added is subtracted. The record is written before the counters: a server without memory
 * rejects the first write of a script, and none after it. That of a reservation without members gets no counts.
 */
export const RESERVATION = script(`${STEP}
local record = pcall('GET', KEYS[1])
if type(record) == 'table' then return record end
if (record or '') ~= ARGV[1] then return { 'changed', record or '' } end
local change = cjson.decode(ARGV[3])
local now, lifetime, most, expires, anyway, ending = change[1], change[2], change[3], change[4], change[5], change[6]
local opens = expires ~= 0
local FIRST = 6
local function of(i, n) return change[FIRST + 7 * (i - 1) + n] end
local steps = (#change - FIRST) / 7
local holds = false
for i = 1, steps do
  local list, member = KEYS[2 * i + 1], of(i, 6)
  if member ~= '' then holds = true end
  if opens then
    local ended = pcall('ZRANGEBYSCORE', list, '-inf', now, 'LIMIT', 0, ending)
    if ended.err then return ended end
    local hits = 0
    for _, each in ipairs(ended) do hits = hits + (tonumber(string.match(each, '^c(%d+)')) or 0) end
    if hits > 0 then
      local left = step(KEYS[2 * i], string.format('-%.0f', math.min(hits, LARGEST)))
      if type(left) == 'table' then return left end
    end
    if #ended > 0 then pcall('ZREMRANGEBYRANK', list, 0, #ended - 1) end
    if member ~= '' and pcall('ZCOUNT', list, '(' .. now, '+inf') >= tonumber(most) then return { 'full' } end
  elseif member ~= '' then
    local score = pcall('ZSCORE', list, member)
    if type(score) == 'table' then return score end
    if not score then return { 'expired' } end
  end
end
local counts, sums, denied, together, over = {}, {}, anyway == 1, 0, 0
for i = 1, steps do
  local key, hits = KEYS[2 * i], tonumber(of(i, 1))
  local before = sums[key] or step(key, '0')
  if type(before) == 'table' then return before end
  local sum = math.min(LARGEST, before + hits)
  if hits < 0 then sum = math.max(0, sum) end
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
  local before, count = counts[i][1], counts[i][2]
  local added = count - before
  if denied then
    added = 0
    if count <= of(i, 4) then count = before end
  end
  count = math.max(0, count)
  reply[2 * i], reply[2 * i + 1] = count, added
  texts[i] = string.format('%.0f:%.0f', count, added)
end
if denied then return reply end
local written = {}
if ARGV[2] ~= '' then
  local after = ARGV[2]
  if steps > 0 and (holds or not opens) then after = after .. '\\n' .. table.concat(texts, ',') end
  written = pcall('SET', KEYS[1], after, 'PX', lifetime)
elseif record then
  written = pcall('DEL', KEYS[1])
end
if type(written) == 'table' and written.err then return written end
for i = 1, steps do
  local list, member = KEYS[2 * i + 1], of(i, 6)
  if of(i, 1) ~= '0' then step(KEYS[2 * i], of(i, 1), of(i, 2), of(i, 3)) end
  if member ~= '' and opens then
    local held = string.format('%.0f', reply[2 * i + 1])
    pcall('ZADD', list, expires, string.sub(member, 1, 1) .. held .. string.sub(member, 2))
    if pcall('TTL', list) < of(i, 7) then pcall('EXPIRE', list, of(i, 7)) end
  elseif member ~= '' then
    pcall('ZREM', list, member)
  end
end
return reply
`);
