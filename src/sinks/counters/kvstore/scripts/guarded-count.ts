import { script } from './script';
import { STEP } from './step';

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
