import { counted } from '../../text/counted';
import { visibleLines } from '../../text/visible';
import { COLUMNS, type Counts, type Figures, type RuleFigures, type Span, type Tally, countsOf } from './tally';

/** What the lines of a log were. */
export class LogFigures {
  lines = 0;
  /** Calls that were played. */
  played = 0;
  malformed = 0;
  /** The first ones. */
  malformedLines: { readonly line: number; readonly reason: string }[] = [];
  /** Settlements and cancellations of reservations that were played. */
  ended = 0;
  /** Settlements and cancellations of reservations that are not open in the replay. */
  unreserved = 0;
  /** Lines that came too late to be put in order: they were played at the time of the line before. */
  late = 0;
  /** Lines of something else. */
  other = 0;
  /** Calls that had failed, so that no rule had decided them. */
  failed = 0;
  /** Calls of which the log has left out descriptors or entries. */
  incomplete = 0;
  /** Calls that a service would reject. */
  rejected = 0;
  /** Played calls whose texts the log has cut off. */
  cutOff = 0;
  /** Played calls that were within their limits; none is in a log with `DECISION_LOG=denied`. */
  withinLimits = 0;
  /** The smallest share of the decisions that was written; 1 if all were. */
  sample = 1;
  /** When the first and the last played call were, in Unix milliseconds; NaN without one. */
  from = Number.NaN;
  to = Number.NaN;
  /** Counters that were removed for lack of room. */
  evictions = 0;
}

/** The result of a replay; the JSON that weir-check prints. */
export interface ReplayReport {
  readonly log: Omit<LogFigures, 'from' | 'to'>;
  /** When the first and the last call were. */
  readonly from: string;
  readonly to: string;
  /** What decided the calls before: the log, or other rules. */
  readonly before: 'recorded' | 'replayed';
  /** What limits the meaning of the figures, in sentences. */
  readonly notes: readonly string[];
  readonly total: Figures;
  /** The rules with the biggest change first. */
  readonly rules: readonly RuleFigures[];
  readonly timeline: readonly (Omit<Span, 'start'> & { readonly start: string })[];
}

/** @throws Error when no call of the log was played */
export function reportOf({ from, to, ...log }: LogFigures, tally: Tally, before: ReplayReport['before']): ReplayReport {
  const { total, rules, spans } = tally;
  const notes = [...notesOnLog(log, before), ...notesOnRules(rules, tally.unlistedCalls)].flatMap(([count, note]) =>
    count === 0 ? [] : [note],
  );
  if (log.played === 0) throw new Error(['the log has no decision that can be played', ...notes].join('; '));
  return {
    log,
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    before,
    notes,
    total,
    rules,
    timeline: spans.map(({ start, figures: ofSpan }) => ({ start: new Date(start).toISOString(), figures: ofSpan })),
  };
}

/** A note, unless the count is 0. */
type Note = readonly [count: number, text: string];

function notesOnLog(log: ReplayReport['log'], before: ReplayReport['before']): readonly Note[] {
  const { played, malformed, other, failed, incomplete, rejected, unreserved, late, cutOff, withinLimits } = log;
  const { sample, evictions } = log;
  const first = log.malformedLines.map(({ line, reason }) => `line ${line}: ${reason}`).join('; ');
  const further = malformed > log.malformedLines.length ? '; …' : '';
  const isSample = Number(sample < 1);
  return [
    [malformed, `left out as malformed: ${counted(malformed, 'line')} (${first}${further})`],
    [other, `left out as no decisions: ${counted(other, 'line')}`],
    [failed, `left out as failed, so that no rule has decided them: ${counted(failed, 'call')}`],
    [incomplete, `left out, because the log does not have all their entries: ${counted(incomplete, 'call')}`],
    [rejected, `left out, because a service would reject them: ${counted(rejected, 'call')}`],
    [unreserved, `left out, because the replay has no such open reservation: ${counted(unreserved, 'settlement')}`],
    [
      late,
      'too late to be put in order, so that they are played at the time of the line before: ' +
        `${counted(late, 'line')}; sort the lines, which begin with their time`,
    ],
    [cutOff, `the log has cut off texts of ${counted(cutOff, 'call')}: callers whose texts begin alike count as one`],
    [
      Number(played > 0 && withinLimits === 0),
      'no call of the log is within its limits: with DECISION_LOG=denied the calls that use up the ' +
        'limits are missing, so replay a log with DECISION_LOG=all',
    ],
    [
      isSample,
      `the log is a sample (DECISION_LOG_SAMPLE=${sample}): each call stands for ` +
        `${Math.round(1 / sample)} calls at one time, so that all figures are estimates, ` +
        'and callers with few calls are denied too often',
    ],
    [
      isSample && Number(before === 'recorded'),
      'the log says how all calls were decided, but the replay has only the sample: use -now, so ' +
        'that both are estimated alike',
    ],
    [evictions, `${counted(evictions, 'counter')} had no room in memory and started again at 0: too much is allowed`],
  ];
}

function notesOnRules(rules: readonly RuleFigures[], unlisted: number): readonly Note[] {
  const uncertain = rules.filter((rule) => rule.isUncertain).map(({ rule }) => rule);
  const shadow = rules
    .filter((rule) => rule.overInShadow > 0)
    .map(({ rule, overInShadow }) => `${rule} ${overInShadow}`);
  return [
    [uncertain.length, `the sample is too small for the limits of ${listed(uncertain)}`],
    [shadow.length, `calls over limits in shadow mode, which are allowed: ${listed(shadow)}`],
    [unlisted, 'there are more callers than can be told apart: those that came last are not listed'],
  ];
}

/** Names that a note has. */
const LISTED_NAMES = 10;

function listed(names: readonly string[]): string {
  return `${names.slice(0, LISTED_NAMES).join(', ')}${names.length > LISTED_NAMES ? ', …' : ''}`;
}

/** What the candidate rules are compared with. */
export const COMPARED = { recorded: 'what the log says was decided', replayed: 'the present rules' } as const;

/**
 * A human-readable report: the rules in a table, then the callers of each, then what limits the meaning of the figures.
 */
export function formatReport({ from, to, before, total, rules, notes }: ReplayReport): string {
  return visibleLines([
    `${counted(total.calls, 'call')} from ${from} to ${to}, compared with ${COMPARED[before]}`,
    '',
    ...table('RULE', [...rules.map(({ rule, ...figures }) => [rule, figures] as const), ['all calls', total]]),
    ...rules.flatMap(formatCallers),
    ...(notes.length === 0 ? [] : ['', ...notes.map((note) => `note: ${note}`)]),
  ]);
}

function formatCallers(row: RuleFigures): readonly string[] {
  if (row.callers.length === 0) return [];
  const rows = row.callers.map((caller) => [caller.caller, caller] as const);
  return ['', callersTitle(row), ...table('CALLER', rows).map((line) => `  ${line}`)];
}

/** How many callers of a rule are affected. */
export function callersTitle({ rule, callersNewlyDenied, callersNewlyAllowed }: RuleFigures): string {
  return `${rule}: ${counted(callersNewlyDenied, 'caller')} newly denied, ${callersNewlyAllowed} newly allowed`;
}

function table(name: string, rows: readonly (readonly [string, Counts])[]): readonly string[] {
  const head = [name, ...Object.values(COLUMNS).map((title) => title.toUpperCase())];
  const cells = [head, ...rows.map(([first, counts]) => [first, ...countsOf(counts).map(String)])];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  return cells.map((row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join('  '),
  );
}
