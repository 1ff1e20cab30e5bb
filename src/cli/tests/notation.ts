import type { RateLimitRequest } from '../../limiter/request';
import type { Purpose } from '../../counting/algorithms/algorithm';
import { NO_HITS_ADDEND } from '../../limiter/request';
import { CONFLICT_MARKER } from '../../rules/files/yaml/decode-text';
import { unitByName } from '../../rules/unit';

/** A line of a test cannot be read; the message is one sentence for the user. */
export class NotationError extends Error {
  override readonly name = 'NotationError';
}

/** Calls, and what is expected of them. */
export interface CallsLine {
  readonly kind: 'calls';
  readonly times: number;
  readonly descriptors: RateLimitRequest['descriptors'];
  readonly purpose: Purpose | undefined;
  /** The line up to its answer. */
  readonly before: string;
  readonly expected: string;
}

/** A line of a test: docs/testing-rules.md has the notation. */
export type TestLine =
  | CallsLine
  /** The value of a statistic of a rule, without what the names of all of them begin with. */
  | ({ readonly kind: 'statistic'; readonly name: string } & Pick<CallsLine, 'before' | 'expected'>)
  /** Blank, or a comment. */
  | { readonly kind: 'none' }
  | { readonly kind: 'setting'; readonly name: string; readonly value: string }
  | { readonly kind: 'domain' | 'rules' | 'test'; readonly value: string }
  | { readonly kind: 'after'; readonly milliseconds: number }
  /** In Unix milliseconds. */
  | { readonly kind: 'at'; readonly time: number };

/** In characters: requests that a service accepts are shorter. */
const LONGEST_LINE = 64 * 1024;
/** Between a request and its answer, with the blank before it. */
const ARROW = / (?:→|->)(?= |$)/;
/** Most repetitions of a call: more is no test of windows. */
const MOST_TIMES = 1_000_000;

/**
 * Reads a line without blanks around it, in linear time.
 *
 * @throws NotationError
 */
export function readLine(text: string): TestLine {
  if (text === '' || text.startsWith('#')) return { kind: 'none' };
  if (CONFLICT_MARKER.test(text))
    throw new NotationError('this line is the marker of a merge conflict: keep what is right of both sides');
  if (text.length > LONGEST_LINE) throw new NotationError(`a line has at most ${LONGEST_LINE} characters`);
  const blank = text.indexOf(' ');
  const [word, value] = [text.slice(0, blank), text.slice(blank + 1).trim()];
  if (word === 'test' || word === 'domain' || word === 'rules') return { kind: word, value };
  const [, name, of] = /^with (\w+)=(.*)$/s.exec(text) ?? [];
  if (name !== undefined) return { kind: 'setting', name, value: of! };
  if (word === 'after') return { kind: 'after', milliseconds: durationOf(value) };
  if (word === 'at') return { kind: 'at', time: timeOf(value) };
  const [, named = '', statistic, number = ''] = /^(statistic (\S+) += )(\d*)$/.exec(text) ?? [];
  if (statistic !== undefined) return { kind: 'statistic', name: statistic, before: named, expected: number };
  return readCalls(text);
}

function readCalls(text: string): CallsLine {
  const arrow = ARROW.exec(text);
  if (arrow === null) throw new NotationError(NO_LINE);
  const call = text.slice(0, arrow.index).trimEnd();
  const before = text.slice(0, arrow.index + arrow[0].length);
  const [repeated = '', times = '1'] = /^(\d+) (?:×|x) /.exec(call) ?? [];
  if (Number(times) === 0 || Number(times) > MOST_TIMES)
    throw new NotationError(`repeat a call 1 to ${MOST_TIMES} times`);
  const [named = '', what] = /^(check|report) +/.exec(call.slice(repeated.length)) ?? [];
  const purpose = what === 'check' ? 'ask' : what === 'report' ? 'report' : undefined;
  const requests = call.slice(repeated.length + named.length).split(' | ');
  const descriptors = requests.map((each) => descriptorOf(each.trim()));
  const expected = text.slice(before.length).trimStart();
  return { kind: 'calls', times: Number(times), descriptors, purpose, before: `${before} `, expected };
}

const NO_LINE =
  'this is no line of a test: expected KEY=VALUE,KEY=VALUE → ANSWER, or one that begins with after, ' +
  'at, with, domain, test, rules, statistic or #';

function durationOf(text: string): number {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?) (\w+?)s?$/.exec(text) ?? [];
  const seconds = unit === 'millisecond' ? 0.001 : unitByName(unit)?.seconds;
  if (seconds === undefined)
    throw new NotationError(`"${text}" is no duration: expected, for example, 1 minute or 90 seconds`);
  return Math.round(Number(number) * seconds * 1_000);
}

function timeOf(text: string): number {
  const [date = ''] = /^\d{4}-\d\d-\d\d(?=T.*(?:Z|[+-]\d\d:\d\d)$)/.exec(text) ?? [];
  const time = date === '' ? Number.NaN : Date.parse(text);
  // JavaScript takes 30 February for 1 March.
  const isDay = !Number.isNaN(time) && new Date(date).toISOString().startsWith(date);
  if (!isDay) throw new NotationError(`"${text}" is no time: expected, for example, 2026-03-01T09:30:00Z`);
  return time;
}

/** An entry; its value is in quotes, as in JSON, if it has blanks, commas or quotes. */
const ENTRY = /([^=,\s"]+)=("(?:[^"\\]|\\.)*"|[^,\s"]*)(,|\s+|$)/y;

/** `key=value,key=value`, and after a blank `hits=2`, `subtract=2` or `limit=5/minute`. */
function descriptorOf(text: string): RateLimitRequest['descriptors'][number] {
  const entries: { key: string; value: string }[] = [];
  let at = 0;
  for (let end = ','; end === ',';) {
    ENTRY.lastIndex = at;
    const [all, key, value] = ENTRY.exec(text) ?? [];
    if (all === undefined) throw new NotationError(`invalid descriptor "${text}": expected KEY=VALUE,KEY=VALUE`);
    entries.push({ key: key!, value: value!.startsWith('"') ? unquoted(value!) : value! });
    at += all.length;
    end = all.at(-1) === ',' ? ',' : '';
  }
  const fields = text
    .slice(at)
    .split(/\s+/)
    .filter((field) => field !== '');
  const plain = { entries, limit: undefined, hitsAddend: NO_HITS_ADDEND, isNegativeHits: false };
  for (const field of fields) Object.assign(plain, fieldOf(field));
  return plain;
}

function unquoted(text: string): string {
  try {
    return JSON.parse(text) as string;
  } catch {
    throw new NotationError(`${text} is no text in quotes as JSON has them: write \\\\ for a backslash`);
  }
}

function fieldOf(field: string): Partial<RateLimitRequest['descriptors'][number]> {
  const [, name, number, unitName = ''] = /^(hits|subtract|limit)=(\d+)(?:\/(\w+))?$/.exec(field) ?? [];
  const unit = unitByName(unitName);
  if (name === 'hits' && unitName === '') return { hitsAddend: Number(number) };
  if (name === 'subtract' && unitName === '') return { hitsAddend: Number(number), isNegativeHits: true };
  if (name === 'limit' && unit !== undefined) return { limit: { requestsPerUnit: Number(number), unit } };
  throw new NotationError(`"${field}" is no field of a descriptor: expected hits=N, subtract=N or limit=N/UNIT`);
}
