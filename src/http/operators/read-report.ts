import { MOST_PEERS, SAMPLES_ASKED } from '../../operators/fleet/fleet';
import { MARKS_SENT } from '../../operators/history/history';
import type { Change, History, HistoryMark, InstanceReport, LiveRates, PeerReport } from '../../operators/live-answers';
import { RULES_OF_OTHERS } from '../../operators/history/recording';
import { LISTED_OFFENDERS, LISTED_RULES, LONGEST_REPORTED, MOST_SETTINGS } from '../../operators/fleet/merge-reports';
import { WATCHED_SECONDS, type WatchCounts } from '../../operators/fleet/watches';
import { CONDITIONS } from '../../streams/server-report';
import { messageOf } from '../../text/thrown';
import { boundedText, ownText } from '../../text/table-key';
import { JsonCursor } from '../json/json-cursor';

/** Changes of a peer. */
export const MOST_CHANGES = 50;
/** Characters of all texts that are kept of an answer; of further ones, each is kept up to this length. */
const [MOST_TEXT, SHORT] = [24 * 1024, 32];

/** An answer while it is read. */
class Answer extends JsonCursor {
  /** What is left out: how many of what, by its name. */
  readonly dropped = new Map<string, number>();
  #textLeft = MOST_TEXT;

  drop(what: string, count = 1): void {
    this.dropped.set(what, (this.dropped.get(what) ?? 0) + count);
  }

  keep(whole: string, most: number): string {
    const kept = boundedText(whole, Math.min(most, Math.max(SHORT, this.#textLeft)));
    if (kept !== whole) this.drop('ends of long texts');
    this.#textLeft -= kept.length;
    return ownText(kept);
  }
}

/** Reads a value, and keeps of it what it is about. Throws with the place of what is something else. */
type Read<Value> = (answer: Answer) => Value;

/** A text; of a longer one, the beginning and a digest. */
function text(most = LONGEST_REPORTED): Read<string> {
  return (answer) => answer.keep(answer.string(), most);
}

const time: Read<string> = (answer) => {
  const iso = answer.string();
  if (iso.length > 30 || Number.isNaN(Date.parse(iso))) answer.fail('expected a time in the format of ISO 8601');
  return ownText(iso);
};

const flag: Read<boolean> = (answer) => answer.boolean();

/** The last second of a date, in Unix seconds. */
const LAST_TIME = 8_640_000_000_000;

/** From 0 to 2^53 − 1. */
const number: Read<number> = (answer) => {
  const value = Number(answer.numberText() ?? answer.unexpected('a number'));
  if (!(value >= 0 && value <= Number.MAX_SAFE_INTEGER)) answer.fail('expected a number from 0 to 2^53 − 1');
  return value;
};

/** Unix seconds of which a date can be made; 0: not known. */
const TIME_OR_0: Read<number> = (answer) => {
  const seconds = number(answer);
  return seconds <= LAST_TIME ? seconds : answer.fail('expected a time in Unix seconds');
};

function oneOf<const Text extends string>(...texts: readonly Text[]): Read<Text> {
  return (answer) => {
    const given = answer.string();
    return texts.find((each) => each === given) ?? answer.fail(`expected ${texts.join(' or ')}`);
  };
}

function nullable<Value>(read: Read<Value>): Read<Value | null> {
  return (answer) => (answer.isNull() ? null : read(answer));
}

/** @param what names the items that are more than `most` */
function list<Item>(what: string, most: number, read: Read<Item>): Read<readonly Item[]> {
  return (answer) => {
    const items: Item[] = [];
    answer.enterArray('values');
    while (answer.nextElement()) {
      if (items.length === most) answer.drop(what, answer.skipRest());
      else items.push(read(answer));
    }
    return items;
  };
}

type Members = Readonly<Record<string, Read<unknown>>>;
type ValuesOf<Rows extends Members> = { readonly [Name in keyof Rows]: ReturnType<Rows[Name]> };

/**
 * An object of exactly these members; others, for example of a newer version, are dropped.
 *
 * @param absent the values of members that older versions do not have
 */
function object<Rows extends Members>(members: Rows, absent: Partial<ValuesOf<Rows>> = {}): Read<ValuesOf<Rows>> {
  const reads = new Map(Object.entries(members));
  return (answer) => {
    const values = new Map<string, unknown>(Object.entries(absent));
    answer.enterObject('a value');
    for (let name = answer.nextMember(); name !== undefined; name = answer.nextMember()) {
      const read = reads.get(name);
      if (read !== undefined) values.set(name, read(answer));
      else {
        answer.drop('unknown members');
        answer.skip();
      }
    }
    const missing = Array.from(reads.keys()).filter((name) => !values.has(name));
    if (missing.length > 0) answer.fail(`it lacks ${missing.join(', ')}`);
    return Object.fromEntries(values) as ValuesOf<Rows>;
  };
}

const SETTING = /^[A-Z][A-Z\d_]*$/;

/** Characters of the name of a setting. */
const LONGEST_NAME = 64;

/** Values of settings, by their names. */
const settings: Read<InstanceReport['settings']> = (answer) => {
  // Without a prototype, an object has no hidden classes, of which any names would make new ones.
  const values: Record<string, string> = Object.create(null);
  let count = 0;
  const read = text();
  answer.enterObject('settings');
  for (let name = answer.nextMember(); name !== undefined; name = answer.nextMember()) {
    if (count === MOST_SETTINGS) answer.drop('settings', answer.skipRest());
    else if (SETTING.test(name)) {
      values[answer.keep(name, LONGEST_NAME)] = read(answer);
      count += 1;
    } else {
      answer.drop('settings');
      answer.skip();
    }
  }
  return values;
};

/** Characters of a sentence about health, and of the version of rules, which may be a path. */
const [SENTENCE, VERSION] = [1_000, 5_000];

const STATE = oneOf('green', 'amber', 'red', 'unknown');
const BASE = { state: STATE, text: text(SENTENCE), todo: nullable(object({ text: text(), link: text() })) };
const PART = { ...BASE, since: nullable(time) };
const POLICY = oneOf('error', 'allow', 'deny', 'local');
/** What parts of health that older versions report lack. */
const NO_SINCE = { since: null };
const SERVER = object(
  {
    ...{ ...BASE, text: text() },
    server: text(),
    store: text(),
    condition: nullable(oneOf(...CONDITIONS)),
    since: nullable(time),
    isOpen: flag,
    requests: number,
    errors: number,
    latency: nullable(number),
  },
  { condition: null, since: null },
);
const RULE = object(
  { statisticsKey: text(), hits: number, over: number, shadow: number, calls: number },
  { shadow: 0, calls: 0 },
);
const RULES = list('rules', LISTED_RULES, RULE);
const OFFENDER = object(
  {
    key: text(),
    ...{ domain: text(), rule: text(), statisticsKey: text(), descriptor: text(), isShadow: flag },
    ...{ limited: number, error: number, recent: number, calls: nullable(number) },
    ...{ since: TIME_OR_0, until: TIME_OR_0, isZero: flag },
  },
  { statisticsKey: '', recent: 0, calls: null, since: 0, until: 0, isZero: false },
);
/** @param read each of them */
function rates<Value>(read: Read<Value>): Read<Readonly<Record<keyof LiveRates, Value>>> {
  return object({
    ...{ within: read, near: read, over: read, shadow: read },
    ...{ calls: read, invalid: read, storeErrors: read, noMatch: read },
  });
}

/** All that is kept of what a peer answers: a member of the type that has no row here does not compile. */
const REPORT: Read<InstanceReport> = object(
  {
    id: text(),
    name: text(),
    version: text(),
    startedAt: time,
    settings,
    health: object({
      healthy: flag,
      unhealthy: list('unhealthy parts', 16, text()),
      degraded: list('degraded parts', 16, text()),
      state: STATE,
      store: object({ ...PART, policy: nullable(POLICY), servers: list('servers', 64, SERVER) }, NO_SINCE),
      rules: object({ ...PART, version: nullable(text(VERSION)), age: nullable(number), isRejected: flag }, NO_SINCE),
      process: object({ ...PART, phase: oneOf('starting', 'serving', 'draining') }, NO_SINCE),
    }),
    loaded: nullable(object({ source: text(VERSION), version: text(VERSION), at: time, rules: number })),
    rates: nullable(rates(number)),
    latency: nullable(object({ p50: number, p99: number })),
    rules: object({ hits: RULES, denials: RULES }),
    offenders: object({
      // JSON has null for a process that has counted none.
      since: (answer) => nullable(number)(answer) ?? 0,
      floor: number,
      offenders: list('callers', LISTED_OFFENDERS, OFFENDER),
    }),
    changes: number,
  },
  { changes: 0 },
);

const SERIES = list('numbers', SAMPLES_ASKED, nullable(number));
const MARK = object(
  {
    at: number,
    kind: oneOf('start', 'stop', 'reload', 'rejection', 'worker', 'store'),
    text: text(SENTENCE),
    instance: text(),
    ...{ until: nullable(number), server: text(), store: text(), calls: nullable(number), policy: nullable(POLICY) },
  },
  { until: null, server: '', store: '', calls: null, policy: null },
);
/** All that is kept of the history that a peer sends. */
const HISTORY: Read<History> = object({
  interval: number,
  instances: list('instances', MOST_PEERS + 1, object({ id: text(), name: text(), until: number })),
  times: list('samples', SAMPLES_ASKED, number),
  rates: rates(SERIES),
  latency: object({ p50: SERIES, p99: SERIES }),
  store: object({ requests: SERIES, errors: SERIES, latency: SERIES }),
  rules: list('rules', RULES_OF_OTHERS, object({ statisticsKey: text(), hits: SERIES, over: SERIES })),
  marks: list('marks', MARKS_SENT, (answer) => markOf(MARK(answer))),
});

/** Only marks of outages have all members. */
function markOf({ kind, ...mark }: ReturnType<typeof MARK>): HistoryMark {
  const { at, text: what, instance } = mark;
  return kind === 'store' ? { kind, ...mark } : { kind, at, text: what, instance };
}

const CHANGES: Read<{ readonly changes: readonly Change[] }> = object({
  changes: list(
    'changes',
    MOST_CHANGES,
    object({
      ...{ id: text(), at: time, name: text(), from: text(), what: oneOf('counter set', 'counter cleared') },
      ...{ domain: text(), descriptor: text(), window: nullable(text()), before: number, after: number },
      ...{ reason: nullable(text()), instance: text() },
    }),
  ),
});

const SECONDS = list('seconds', WATCHED_SECONDS, number);
const WATCH: Read<WatchCounts> = object({ times: SECONDS, calls: SECONDS, denied: SECONDS });

/** @throws Error that says where it is something else */
export function readWatch(json: string): WatchCounts {
  return readAnswer(json, WATCH).value;
}

/** @throws Error that says where it is something else */
export function readHistory(json: string): History {
  return readAnswer(json, HISTORY).value;
}

/** @throws Error that says where it is something else */
export function readChanges(json: string): readonly Change[] {
  return readAnswer(json, CHANGES).value.changes;
}

/**
 * Reads what an instance reports, which may be of another version. Nothing else of the text is kept in memory.
 *
 * @throws Error that says where it is something else
 */
export function readReport(json: string): PeerReport {
  const { value: report, note } = readAnswer(json, REPORT);
  return { report, note };
}

function readAnswer<Value>(json: string, of: Read<Value>): { readonly value: Value; readonly note: string | null } {
  const answer = new Answer(json, true);
  try {
    const value = of(answer);
    answer.end();
    const parts = Array.from(answer.dropped, ([what, count]) => `${count} ${what}`);
    return { value, note: parts.length === 0 ? null : `of its answer, ${parts.join(' and ')} were dropped` };
  } catch (error) {
    throw new Error(`its answer is not that of an instance: ${messageOf(error)}`, { cause: error });
  }
}
