import { createHash } from 'node:crypto';

/**
 * One step on one counter, in Lua; the beginning of every script.
 *
 * `step(key, hits, expiry)` gives the count after it, or the error of this key alone. The hits are a text, as Redis wants
 * them: to make one of a number cost it a tenth of the step, as measured. Calls go through `pcall`, because an
 * error that is raised would stop the script half way, with the keys before it counted and nobody told.
 *
 * - hits above 0: added; a key without expiry (new, or left so by somebody) is given it. What would pass 2^53 − 1 is taken
 *   back, since Lua and JavaScript could not tell the count any more.
 * - 0: read; an absent key stays absent and counts 0.
 * - below 0: taken away, down to 0; the expiry stays, an absent key stays absent.
 */
export const STEP = `
local pcall = redis.pcall
local LARGEST = 9007199254740991
local MINUS = 45
local function inexact() return redis.error_reply('INEXACT the count has passed 2^53') end
local function step(key, hits, expiry)
  if hits ~= '0' and string.byte(hits) ~= MINUS then
    local count = pcall('INCRBY', key, hits)
    if type(count) ~= 'number' then return count end
    if count > LARGEST then
      pcall('DECRBY', key, hits)
      return inexact()
    end
    if pcall('TTL', key) == -1 then pcall('EXPIRE', key, expiry) end
    return count
  end
  local stored = pcall('GET', key)
  if not stored then return 0 end
  if type(stored) == 'table' then return stored end
  if not string.find(stored, '^-?%d+$') then return redis.error_reply('ERR value is not an integer') end
  local count = tonumber(stored)
  if count > LARGEST then return inexact() end
  if hits == '0' then return count end
  local taken = math.min(-tonumber(hits), count)
  if taken == 0 then return 0 end
  return pcall('DECRBY', key, taken)
end
`;

/** A script and the name that the server knows it by once it has seen it. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

export function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/**
 * Steps on counters, one after another.
 *
 * - KEYS: the key of each step; the same key may come again.
 * - ARGV[1]: a JSON list of two values a step: its hits as text, and the expiry in seconds for a key that has none.
 *   One argument, because the client and the server both pay for each.
 * - Result: a list, for each step the count after it or the error of its key.
 * - Atomic because a key must not be left without expiry between its increment and its EXPIRE, and because taking away
 *   down to 0 reads and then writes.
 */
export const COUNT = script(`${STEP}
local steps = cjson.decode(ARGV[1])
local counts = {}
for i = 1, #KEYS do counts[i] = step(KEYS[i], steps[2 * i - 1], steps[2 * i]) end
return counts
`);

/**
 * Steps on counters, some of them tied together: when any of those would go over its limit, only those that are over or
 * would go over are taken, the others only read (STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT).
 *
 * - KEYS: the key of each step.
 * - ARGV[1]: a JSON list of four values a step: its hits as text, the expiry in seconds for a key that has none, its limit, and how
 *   many steps from here on are tied together (1: the step stands alone).
 * - Result: a list, for each step the count after it or the error of its key.
 * - Atomic because otherwise calls at the same time would all see room before any of them takes it.
 */
export const GUARDED_COUNT = script(`${STEP}
local steps = cjson.decode(ARGV[1])
local counts = {}
local i = 1
while i <= #KEYS do
  local last = i + steps[4 * i] - 1
  local over = {}
  local any = false
  if last > i then
    for j = i, last do
      local stored = step(KEYS[j], '0', 0)
      if type(stored) == 'number' and stored + tonumber(steps[4 * j - 3]) > steps[4 * j - 1] then
        over[j] = true
        any = true
      end
    end
  end
  for j = i, last do
    local hits = steps[4 * j - 3]
    if any and not over[j] then hits = '0' end
    counts[j] = step(KEYS[j], hits, steps[4 * j - 2])
  end
  i = last + 1
end
return counts
`);
