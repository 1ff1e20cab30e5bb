import { script } from './script';
import { STEP } from './step';

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
