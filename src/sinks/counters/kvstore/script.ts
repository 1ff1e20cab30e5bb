import { createHash } from 'node:crypto';

/** A Lua script. */
export interface Script {
  readonly text: string;
  /** The SHA-1 of the text, by which EVALSHA runs a script that the server has loaded. */
  readonly sha: string;
}

/** The text of a script, or of a part of one. `scripts/mutate.mjs` finds it by this tag. */
export const lua = String.raw;

export function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/** What is written for each name: JSON as it is. */
export type Values<Name extends string> = Readonly<Record<Name, string | number | boolean>>;

/**
 * Values that follow each other in the JSON argument of a script, and their names: one list for what writes them and
 * for the Lua that reads them.
 */
export class Fields<Name extends string> {
  readonly #names: readonly Name[];

  constructor(...names: readonly Name[]) {
    this.#names = names;
  }

  get size(): number {
    return this.#names.length;
  }

  /** Lua: declares variables for values of a list, from an index on; for all of them, or for those with these names. */
  read(list: string, from: string | number, ...names: readonly Name[]): string {
    const read = names.length === 0 ? this.#names : names;
    const values = read.map((name) => {
      const index = this.#names.indexOf(name);
      return `${list}[${typeof from === 'number' ? from + index : `${from} + ${index}`}]`;
    });
    return `local ${read.join(', ')} = ${values.join(', ')}`;
  }

  /** Lua: as {@link read}, and moves the variable with the index behind the values. */
  take(list: string, at: string, ...names: readonly Name[]): string {
    return `${this.read(list, at, ...names)}\n${at} = ${at} + ${this.size}`;
  }

  /** JSON, between commas. */
  write(values: Values<Name>): string {
    let json = String(values[this.#names[0]!]);
    for (let index = 1; index < this.#names.length; index += 1) json += `,${values[this.#names[index]!]}`;
    return json;
  }
}

/**
 * In Lua: `timeOf(given)`, the Unix time in microseconds: that of the server, not of the caller, whose clock may be
 * wrong; in tests the given one, which is not empty then.
 */
export const CLOCK = lua`
local function timeOf(given)
  if given ~= '' then return tonumber(given) end
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
`;

/**
 * What all scripts that change counters begin with.
 *
 * `step(key, hits, text, expiry, left, created)` applies one step and returns the count after it, or the error of this
 * key alone. `text` is `hits` as a text, which INCRBY expects: converting a number took a tenth of the step, as
 * measured. Commands go through `pcall`, because an error that is raised would stop the script half way, with the keys
 * before it counted and their counts not returned.
 *
 * - hits above 0: added. A key without expiry (new, or written by another program), or with one in less than `left`
 *   seconds (of a shorter window, whose limit has the same key), gets `expiry` in seconds. With `created`, only a key
 *   whose count equals it is examined: one that may be new. It saves a command, which is a third of the step.
 * - 0: reads the count; an absent key stays absent and counts 0.
 * - below 0: subtracted, down to 0. The expiry stays; an absent key stays absent.
 *
 * A count saturates at 2^53 − 1: an increment beyond it leaves the key there. A larger value, which another program has
 * written, stays and counts 2^53 − 1. Lua cannot represent such numbers exactly, so an increment beyond is undone,
 * which yields the exact count before it.
 */
export const COMMON = lua`
local pcall, type = redis.pcall, type
local LARGEST = 9007199254740991
local function expire(key, expiry, left)
  local ttl = pcall('TTL', key)
  if type(ttl) == 'number' and ttl < left then pcall('EXPIRE', key, expiry) end
end
local function step(key, hits, text, expiry, left, created)
  if hits > 0 then
    local count = pcall('INCRBY', key, text)
    if type(count) == 'table' then
      if not string.find(count.err, 'would overflow') then return count end
      count = LARGEST
    elseif count > LARGEST then
      local before = pcall('DECRBY', key, text)
      if type(before) == 'number' and before < LARGEST then pcall('INCRBY', key, LARGEST - before) end
      count = LARGEST
    end
    if not created or count == created then expire(key, expiry, left) end
    return count
  end
  local stored = pcall('GET', key)
  if not stored then return 0 end
  if type(stored) == 'table' then return stored end
  if not string.find(stored, '^-?%d+$') then return redis.error_reply('ERR value is not an integer') end
  local count = math.min(tonumber(stored), LARGEST)
  if hits == 0 then return count end
  local taken = math.min(-hits, count)
  if taken == 0 then return 0 end
  local rest = pcall('DECRBY', key, taken)
  if type(rest) == 'number' then return math.min(rest, LARGEST) end
  return rest
end
`;
