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
