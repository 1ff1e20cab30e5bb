import { DecisionError } from '../../counting/decision-error';
import type { LimiterOptions } from '../../limiter/options';
import type { RateLimitRequest } from '../../limiter/request';
import { type Resolution, outcomeOf } from '../../limiter/resolution';
import { CODE_NAMES, Code, type DescriptorStatus } from '../../limiter/verdict';
import type { Explanation } from '../../explain/explanation';
import type { Rule } from '../../rules/rule-tree';
import type { Ruleset } from '../../rules/ruleset';
import { Statistics } from '../../statistics/statistics';
import { visibleLine } from '../../text/visible';
import { Player } from '../replay/player';
import { type CallsLine, NotationError, type TestLine, readLine } from './notation';

/** A moment at which the windows of all units begin: a multiple of 7, 30 and 365 days. Each test begins there. */
const START = 15_330 * 86_400_000;
/** Rules of which a test can have statistics. */
const MOST_STATISTICS = 10_000;
/** What an unlimited rule has left. */
const UNLIMITED = 4_294_967_295;

/** A line of a test file, in its file. */
export interface SourceLine {
  /** From 1. */
  readonly number: number;
  readonly text: string;
}

export interface RuleTest {
  readonly name: string;
  /** Empty: the only one of the rules. */
  readonly domain: string;
  readonly lines: readonly SourceLine[];
}

/** A line of a test whose expectation is not met, or that cannot be played. */
export interface Difference extends SourceLine {
  /** Null: the line cannot be played. */
  readonly expected: string | null;
  /** What is; when the line cannot be played, why. */
  readonly actual: string;
  /** The line with what is as its expectation; undefined when it cannot be played. */
  readonly right: string | undefined;
  /** What the service says of the first of the calls; null where the line has none, or their request is rejected. */
  readonly explanation: Explanation | null;
}

export interface PlayedTest {
  /** Lines with an expectation. */
  readonly expectations: number;
  readonly differences: readonly Difference[];
}

/** What tests are played on. */
export interface Stage {
  readonly ruleset: Ruleset;
  readonly options: LimiterOptions;
  /** Gets the rules that descriptors match. */
  readonly matched: Set<Rule>;
}

/** Plays the lines of a test on counters in memory, from the beginning of a window of every unit on. */
export async function playTest(test: RuleTest, stage: Stage): Promise<PlayedTest> {
  const played = await playLines(test, stage, new Set());
  if (played.differences.length === 0) return played;
  // Again, to explain lines before their calls are counted.
  return playLines(test, stage, new Set(played.differences.map(({ number }) => number)));
}

/** @param explained the numbers of the lines whose calls are explained, should they differ */
async function playLines(test: RuleTest, stage: Stage, explained: ReadonlySet<number>): Promise<PlayedTest> {
  const run = new TestRun(test, stage);
  const differences: Difference[] = [];
  let expectations = 0;
  try {
    for (const { number, text } of test.lines) {
      const difference = { number, text, right: undefined, explanation: null };
      try {
        const line = readLine(text);
        const explanation = line.kind === 'calls' && explained.has(number) ? await run.explain(line) : null;
        const actual = visibleLine(run.line(line));
        if (!('expected' in line)) continue;
        expectations += 1;
        if (actual === line.expected) continue;
        const { expected } = line;
        differences.push({ ...difference, expected, actual, right: line.before + actual, explanation });
      } catch (error) {
        if (!(error instanceof NotationError)) throw error;
        differences.push({ ...difference, expected: null, actual: error.message });
      }
    }
  } finally {
    await run.close();
  }
  return { expectations, differences };
}

class TestRun {
  readonly #player: Player;
  readonly #statistics = new Statistics(MOST_STATISTICS);
  readonly #matched: Set<Rule>;
  #domain: string;
  #now = START;

  constructor({ domain }: RuleTest, { ruleset, options, matched }: Stage) {
    this.#player = new Player(ruleset, options, this.#statistics);
    this.#matched = matched;
    const [only = ''] = ruleset.domains.size === 1 ? ruleset.domains.keys() : [];
    this.#domain = domain === '' ? only : domain;
  }

  /** Returns what is, of a line with an expectation; otherwise an empty text. @throws NotationError */
  line(line: TestLine): string {
    if (line.kind === 'calls') return this.#answers(line);
    if (line.kind === 'statistic') return String(this.#valueOf(line.name));
    if (line.kind === 'domain') this.#domain = line.value;
    if (line.kind === 'after') this.#now += line.milliseconds;
    if (line.kind === 'at') {
      if (line.time < this.#now) throw new NotationError('time passes only forwards: this is before the line above');
      this.#now = line.time;
    }
    if (line.kind === 'setting' || line.kind === 'rules' || line.kind === 'test') {
      throw new NotationError('it applies to the whole file: write it above the first test');
    }
    return '';
  }

  /** @returns null when the service rejects the request, for the reason that the line has as its answer */
  async explain(line: CallsLine): Promise<Explanation | null> {
    try {
      return await this.#player.explain(this.#requestOf(line), this.#now);
    } catch (error) {
      if (error instanceof DecisionError) return null;
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#player.close();
  }

  #requestOf({ descriptors, purpose }: CallsLine): RateLimitRequest {
    if (this.#domain === '')
      throw new NotationError('the rules have several domains: write a line "domain NAME" above');
    return { domain: this.#domain, descriptors, hitsAddend: 0, purpose };
  }

  /** The answer to the last of the calls, when the overall codes of all are the same; otherwise all of these. */
  #answers(line: CallsLine): string {
    const request = this.#requestOf(line);
    const codes = new Set<string>();
    let answer = '';
    for (let call = 0; call < line.times; call += 1) {
      answer = this.#answer(request, line.expected);
      codes.add(answer.slice(0, answer.indexOf(':')));
    }
    return codes.size === 1 ? answer : [...codes].join(', then ');
  }

  #answer(request: RateLimitRequest, expected: string): string {
    try {
      const decision = this.#player.decide(request, this.#now);
      const { overallCode, statuses } = decision.verdict();
      for (const { rule } of decision.resolutions) if (rule !== undefined) this.#matched.add(rule);
      const parts = statuses.map((status, index) => partOf(status, decision.resolutions[index]!, expected));
      return `${CODE_NAMES[overallCode]}: ${parts.join(', ')}`;
    } catch (error) {
      if (error instanceof DecisionError) return `error: ${error.message}`;
      throw error;
    }
  }

  #valueOf(name: string): number {
    return new Map(this.#statistics.entries()).get(`ratelimit.service.rate_limit.${name}`) ?? 0;
  }
}

/** The answer for a descriptor, with its rule and its reset if those of one are expected. */
function partOf(status: DescriptorStatus, resolution: Resolution, expected: string): string {
  let part = leftOf(status);
  const { rule } = outcomeOf(resolution);
  if (expected.includes(' by ') && rule !== undefined) part += ` by ${rule}`;
  const { secondsUntilReset } = status;
  if (expected.includes(' for ') && secondsUntilReset !== undefined) part += ` for ${secondsUntilReset} s`;
  return part;
}

function leftOf({ code, currentLimit, limitRemaining }: DescriptorStatus): string {
  if (code === Code.OVER_LIMIT) return 'over';
  if (currentLimit !== undefined) return `${limitRemaining} left`;
  return limitRemaining === UNLIMITED ? 'unlimited' : 'no limit';
}
