import { excerpt } from '../../text/excerpt';
import { tableKey } from '../../text/table-key';
import type { PlayedCall } from './player';
import type { JudgedCall, RecordedCall } from './recorded-call';

/** How many callers, and how many rules, are told apart at most. */
const MOST_CALLERS = 200_000;
const MOST_RULES = 10_000;
const LONGEST_TEXT = 256;
/** The row of the rules, and the domains, that come after so many. */
const OTHER_RULES = 'other rules';
/** Callers that are listed of each rule. */
const LISTED_CALLERS = 20;
/** A limit of fewer sampled calls than these cannot be judged. */
const FEW_SAMPLED = 10;
/** Most columns of the chart. */
const MOST_SPANS = 120;

/** What is counted of calls, and how a report names it. */
export const COLUMNS = {
  calls: 'Calls',
  allowedBefore: 'Allowed before',
  allowedAfter: 'Allowed after',
  newlyDenied: 'Newly denied',
  newlyAllowed: 'Newly allowed',
} as const;
const COUNTED = Object.keys(COLUMNS) as readonly (keyof typeof COLUMNS)[];

export type Counts = Readonly<Record<keyof typeof COLUMNS, number>>;

/** In the order of {@link COLUMNS}. */
export function countsOf(counts: Counts): readonly number[] {
  return COUNTED.map((name) => counts[name]);
}

/** How many calls were allowed and denied, by what decided before and by the candidate rules. */
export class Figures implements Counts {
  calls = 0;
  allowedBefore = 0;
  allowedAfter = 0;
  newlyDenied = 0;
  newlyAllowed = 0;

  add(before: boolean, after: boolean, calls: number): void {
    this.calls += calls;
    if (before) this.allowedBefore += calls;
    if (after) this.allowedAfter += calls;
    if (before && !after) this.newlyDenied += calls;
    if (after && !before) this.newlyAllowed += calls;
  }

  merge(other: Counts): void {
    for (const name of COUNTED) this[name] += other[name];
  }

  get changed(): number {
    return this.newlyDenied + this.newlyAllowed;
  }
}

/** A descriptor that calls had. */
class Caller extends Figures {
  constructor(readonly caller: string) {
    super();
  }
}

class RuleRow extends Figures {
  /** Calls over a limit of the candidate rules that is in shadow mode. */
  overInShadow = 0;
  smallestLimit = Infinity;
  readonly callers = new Map<string, Caller>();

  constructor(readonly rule: string) {
    super();
  }
}

/** A span of time of the log. */
export interface Span {
  /** Unix milliseconds. */
  readonly start: number;
  readonly figures: Figures;
}

/** What the calls of a rule would become. */
export interface RuleFigures extends Omit<RuleRow, 'smallestLimit' | 'callers' | 'add' | 'merge' | 'changed'> {
  /** The log is a sample, and has too few calls for a limit as low as this. */
  readonly isUncertain: boolean;
  /** How many callers have calls that would newly be denied. */
  readonly callersNewlyDenied: number;
  readonly callersNewlyAllowed: number;
  /** The first ones of these, those with the biggest change first. */
  readonly callers: readonly Caller[];
}

/** What has decided a call before, and what the candidate rules have. */
export interface Judgement {
  readonly before: JudgedCall;
  readonly after: PlayedCall;
}

/** Adds up what calls would become, in a bounded amount of memory. */
export class Tally {
  readonly total = new Figures();
  readonly #rows = new Map<string, RuleRow>();
  #callers = 0;
  /** Calls of callers, and of rules, that are not told apart. */
  unlistedCalls = 0;
  readonly #timeline = new Timeline();
  #heaviest = 1;

  /** @param weight how many calls the call stands for */
  add(call: RecordedCall, { before, after }: Judgement, weight: number): void {
    this.#heaviest = Math.max(this.#heaviest, weight);
    this.total.add(before.isAllowed, after.isAllowed, weight);
    this.#timeline.at(call.time).add(before.isAllowed, after.isAllowed, weight);
    const { domain } = call.request;
    after.descriptors.forEach((descriptor, index) => {
      const earlier = before.descriptors[index]!;
      // Calls that the candidate rules do not limit belong to the rule that has limited them.
      const row = this.#rowOf(domain, descriptor.rule ?? earlier.rule);
      row.add(earlier.isAllowed, descriptor.isAllowed, weight);
      if (descriptor.isOverInShadow) row.overInShadow += weight;
      row.smallestLimit = Math.min(row.smallestLimit, descriptor.capacity ?? Infinity);
      this.#callerOf(row, call.callers[index]!)?.add(earlier.isAllowed, descriptor.isAllowed, weight);
    });
  }

  /** The rules with the biggest change first. */
  get rules(): readonly RuleFigures[] {
    return [...this.#rows.values()].sort(byChange).map(({ rule, callers, smallestLimit, ...figures }) => {
      const changed = [...callers.values()].filter((caller) => caller.changed > 0);
      return {
        rule,
        ...figures,
        isUncertain: this.#heaviest > 1 && smallestLimit < FEW_SAMPLED * this.#heaviest,
        callersNewlyDenied: changed.filter(({ newlyDenied }) => newlyDenied > 0).length,
        callersNewlyAllowed: changed.filter(({ newlyAllowed }) => newlyAllowed > 0).length,
        callers: changed.sort(byChange).slice(0, LISTED_CALLERS),
      };
    });
  }

  get spans(): readonly Span[] {
    return this.#timeline.spans;
  }

  #rowOf(domain: string, rule = 'no rule'): RuleRow {
    // The path of a rule begins with its domain.
    const name = rule.startsWith(`${domain}.`) ? rule : `${excerpt(domain, LONGEST_TEXT)}: ${rule}`;
    return this.#rows.get(name) ?? this.#newRow(this.#rows.size < MOST_RULES ? name : OTHER_RULES);
  }

  #newRow(name: string): RuleRow {
    const row = this.#rows.get(name) ?? new RuleRow(name);
    this.#rows.set(name, row);
    return row;
  }

  #callerOf(row: RuleRow, text: string): Caller | undefined {
    const key = tableKey(text);
    let caller = row.callers.get(key);
    if (caller === undefined && this.#callers < MOST_CALLERS) {
      this.#callers += 1;
      row.callers.set(key, (caller = new Caller(excerpt(text, LONGEST_TEXT))));
    }
    if (caller === undefined) this.unlistedCalls += 1;
    return caller;
  }
}

function byChange(one: Figures, other: Figures): number {
  return other.changed - one.changed || other.calls - one.calls;
}

/** The figures by time, in at most {@link MOST_SPANS} spans of equal length, which is doubled for a longer log. */
class Timeline {
  #start = Number.NaN;
  #length = 1000;
  #spans: (Figures | undefined)[] = [];

  /** The figures of the span that has a time; what is before the first time belongs to the first span. */
  at(time: number): Figures {
    if (Number.isNaN(this.#start)) this.#start = time;
    let index = Math.max(0, Math.floor((time - this.#start) / this.#length));
    for (; index >= MOST_SPANS; index = Math.floor(index / 2)) this.#double();
    return (this.#spans[index] ??= new Figures());
  }

  get spans(): readonly Span[] {
    return Array.from(this.#spans, (figures = new Figures(), index) => {
      return { start: this.#start + index * this.#length, figures };
    });
  }

  #double(): void {
    const halves = this.#spans;
    this.#length *= 2;
    this.#spans = [];
    halves.forEach((half, index) => {
      const whole = (this.#spans[index >> 1] ??= new Figures());
      if (half !== undefined) whole.merge(half);
    });
  }
}
