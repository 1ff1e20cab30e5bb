import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Durations } from './measure/decisions';
import { type StartContender, running, weir } from './processes/contenders';
import { LOADS, type Settings } from './scenarios/loads';
import { SCENARIOS, type Scenario, type StoreName } from './scenarios/scenarios';

export const HELP = `npm run bench -- [options]

Without options, runs everything and writes bench/results/ and bench/suite/README.md.

  --list             prints the names of all measurements
  --only NAMES       runs some of them: names or beginnings of names, separated by commas
  --quick            shorter measurements, one pace, and no scenario with 1,000,000 keys
  --seconds N        of each measurement (default: 3; with --quick: 1)
  --keys N           live keys of the measurements of memory (default: 1000000; with --quick: 100000)
  --set NAME=VALUE   a setting of the service, for example WORKERS=2; may be repeated
  --out FOLDER       where to write results; with --only, --quick, --keys or --set, the default is .bench/
  --against OTHER    plays the loads on another service, at host:port, or on another build of weir, a folder, and on this
                     one, in turn, and prints both side by side; --set is for this one only
  --against-pid PID  the process of the service at host:port, for its CPU time, if it runs on this machine
  --rules            prints the rule file that the other service needs
  --render           writes the tables from bench/results/ without measuring
`;

const MEMORY_STORES = ['memory', 'redis', 'memcached'] as const satisfies readonly StoreName[];

/** What to run. */
export interface Plan {
  readonly scenarios: readonly Scenario[];
  readonly memory: readonly StoreName[];
}

export interface Options {
  readonly plan: Plan;
  /** Whether the plan is everything, measured with the default settings of the service. */
  readonly isComplete: boolean;
  readonly durations: Durations;
  readonly shares: readonly number[];
  readonly memoryKeys: number;
  readonly settings: Settings;
  readonly out: string | undefined;
  readonly against: StartContender | undefined;
  /** What to do instead of measuring. */
  readonly instead: 'help' | 'list' | 'rules' | 'render' | undefined;
}

export function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      only: { type: 'string' },
      quick: { type: 'boolean', default: false },
      seconds: { type: 'string' },
      keys: { type: 'string' },
      set: { type: 'string', multiple: true, default: [] },
      out: { type: 'string' },
      against: { type: 'string' },
      'against-pid': { type: 'string' },
      rules: { type: 'boolean', default: false },
      render: { type: 'boolean', default: false },
    },
  });
  const { quick: isQuick, only, against } = values;
  const seconds = Number(values.seconds ?? (isQuick ? 1 : 3));
  if (!(seconds > 0)) throw new Error(`--seconds: ${values.seconds} is not a positive number`);
  const keys = Number(values.keys ?? (isQuick ? 100_000 : 1_000_000));
  if (!Number.isInteger(keys) || keys < 1 || keys > 1_000_000) {
    throw new Error(`--keys: ${values.keys} is not a whole number from 1 to 1000000`);
  }
  const settings = Object.fromEntries(values.set.map(readSetting));
  return {
    plan: planOf(only, isQuick),
    isComplete: only === undefined && values.keys === undefined && !isQuick && values.set.length === 0,
    durations: durationsOf(seconds),
    shares: isQuick ? [0.5] : [0.25, 0.5, 0.75],
    memoryKeys: keys,
    settings,
    out: values.out,
    against: against === undefined ? undefined : readOther(against, values['against-pid']),
    instead: (['help', 'list', 'rules', 'render'] as const).find((name) => values[name]),
  };
}

/** @param seconds of each measurement */
export function durationsOf(seconds: number): Durations {
  return {
    warmUpCalls: Math.round(60_000 * Math.min(3, seconds)),
    warmUp: 500 * seconds,
    measure: 1_000 * seconds,
    settle: Math.min(500, 200 * seconds),
  };
}

/** The names of everything in a plan, as in `--only`. */
export function namesOf({ scenarios, memory }: Plan): readonly string[] {
  return [...scenarios.map(({ name }) => name), ...memory.map((store) => `memory-per-key/${store}`)];
}

function planOf(only: string | undefined, isQuick: boolean): Plan {
  const prefixes = only?.split(',').map((prefix) => prefix.trim());
  function isWanted(name: string): boolean {
    if (prefixes !== undefined) return prefixes.some((prefix) => name.startsWith(prefix));
    return !isQuick || !name.endsWith('/1m-keys');
  }
  const plan: Plan = {
    scenarios: SCENARIOS.filter(({ name }) => isWanted(name)),
    memory: MEMORY_STORES.filter((store) => isWanted(`memory-per-key/${store}`)),
  };
  if (namesOf(plan).length === 0) throw new Error(`--only: nothing is called ${only}; --list prints all names`);
  return plan;
}

function readSetting(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  if (at <= 0) throw new Error(`--set: ${text} is not NAME=VALUE`);
  return [text.slice(0, at), text.slice(at + 1)];
}

function readOther(text: string, pid: string | undefined): StartContender {
  if (existsSync(join(text, 'main.js'))) return weir(text, {}, { dist: resolve(text) });
  const [, host, port] = /^(.+):(\d+)$/.exec(text) ?? [];
  if (host === undefined) throw new Error(`--against: ${text} is neither host:port nor the folder of a build`);
  if (pid !== undefined && !/^\d+$/.test(pid)) throw new Error(`--against-pid: ${pid} is not a process id`);
  return running({ host, port: Number(port) }, pid === undefined ? undefined : Number(pid));
}

/** Those in which the store of weir is the only difference between two services. */
export function comparableOf({ scenarios }: Plan): readonly Scenario[] {
  const comparable = scenarios.filter(({ load }) => LOADS[load].protocol === 'grpc' && load !== 'over-limit-cached');
  if (comparable.length > 0) return comparable;
  throw new Error('--against: only scenarios over gRPC without TLS and local cache can be compared');
}
