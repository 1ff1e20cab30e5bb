import { PROBLEMS, type Problem, type ProblemDetails } from './problem';

/** A part of a source, as UTF-16 offsets from its start; the end is excluded. */
export interface SourceRange {
  readonly offset: number;
  readonly end: number;
}

/** A range without what else the object has, such as a node of a tree: to be kept. */
export function rangeOnly({ offset, end }: SourceRange): SourceRange {
  return { offset, end };
}

/** The part of a problem that depends on its range. */
export type ProblemLocation = Pick<Problem, 'line' | 'column' | 'sourceLine' | 'mark'>;

/** A document that rules are read from; translates ranges in it for messages. */
export interface SourceDocument {
  /** The name of the source, for messages. */
  readonly file: string;
  /** The position of a range, as a problem contains it. */
  locate(range: SourceRange): ProblemLocation;
  /** The line and the column of a range, as in {@link locate}. */
  position(range: SourceRange): Pick<Problem, 'line' | 'column'>;
  /** A range in a few words, for a message that refers to a second place: `line 7`. */
  describe(range: SourceRange): string;
}

/** A second place, for a message about a first one: `line 7`, with the name of the file when it is another one. */
export function placeFrom(first: SourceDocument, source: SourceDocument, range: SourceRange): string {
  const name = source.describe(range);
  return source === first ? name : `${source.file}, ${name}`;
}

/** Longer lines are shown in part: a rule file on one line is megabytes long. In UTF-16 code units. */
const MAX_LINE_SHOWN = 160;
/** How much of a long line is shown before the marked part. */
const SHOWN_BEFORE = 60;
const CUT = '…';
/** Surrogate pairs are counted by blocks of this many code units. */
const BLOCK = 1024;

/** The text of a rule file, with translation of offsets to lines and columns. */
export class SourceText implements SourceDocument {
  /** Offsets of line starts, computed at the first use: a file without problems needs none. */
  #lineStarts: Uint32Array | undefined;
  /** For each block of the text, the number of surrogate pairs that end before it. */
  #pairs: number[] | undefined;

  constructor(
    readonly file: string,
    readonly text: string,
  ) {}

  locate({ offset, end }: SourceRange): ProblemLocation {
    const line = this.lineOf(offset);
    const start = this.#lineStarts?.[line - 1] ?? 0;
    const next = this.#lineStarts?.[line] ?? this.text.length + 1;
    const stop = this.text[next - 2] === '\r' ? next - 2 : next - 1;
    const length = Math.max(1, Math.min(end, stop) - offset);
    return {
      ...this.position({ offset, end }),
      ...this.#excerpt({ offset: start, end: stop }, { offset, end: offset + length }),
    };
  }

  position({ offset }: SourceRange): Pick<Problem, 'line' | 'column'> {
    const line = this.lineOf(offset);
    const start = this.#lineStarts?.[line - 1] ?? 0;
    return { line, column: offset - this.#pairsBefore(offset) - (start - this.#pairsBefore(start)) + 1 };
  }

  describe({ offset }: SourceRange): string {
    return `line ${this.lineOf(offset)}`;
  }

  /** The line of an offset, counted from 1. */
  lineOf(offset: number): number {
    this.#lineStarts ??= lineStartsOf(this.text);
    let low = 0;
    let high = this.#lineStarts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((this.#lineStarts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  }

  /** The number of surrogate pairs that end before an offset: each is two code units, but one character. */
  #pairsBefore(offset: number): number {
    this.#pairs ??= pairsByBlock(this.text);
    if (this.#pairs.at(-1) === 0) return 0;
    const block = Math.floor(offset / BLOCK);
    return (this.#pairs[block] ?? 0) + lowSurrogates(this.text, block * BLOCK, offset);
  }

  #excerpt(line: SourceRange, { offset, end }: SourceRange): Pick<Problem, 'sourceLine' | 'mark'> {
    const length = end - offset;
    if (line.end - line.offset <= MAX_LINE_SHOWN) {
      return { sourceLine: this.text.slice(line.offset, line.end), mark: { start: offset - line.offset, length } };
    }
    const latest = line.end - MAX_LINE_SHOWN;
    const from = this.#characterStart(Math.max(line.offset, Math.min(offset - SHOWN_BEFORE, latest)));
    const to = this.#characterStart(Math.min(line.end, from + MAX_LINE_SHOWN));
    const before = from > line.offset ? CUT : '';
    return {
      sourceLine: before + this.text.slice(from, to) + (to < line.end ? CUT : ''),
      mark: { start: before.length + offset - from, length: Math.min(length, to - offset) },
    };
  }

  /** The offset, or the one before it when it is between the halves of a surrogate pair. */
  #characterStart(offset: number): number {
    return isLowSurrogate(this.text.charCodeAt(offset)) ? offset - 1 : offset;
  }
}

/** In an array of its final length: one that grows leaves several times as much garbage. */
function lineStartsOf(text: string): Uint32Array {
  let lines = 1;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines += 1;
  const starts = new Uint32Array(lines);
  for (let line = 1; line < lines; line += 1) starts[line] = text.indexOf('\n', starts[line - 1]) + 1;
  return starts;
}

/** Pairs are counted by blocks, so that a position on a line of megabytes does not require a scan of the line. */
function pairsByBlock(text: string): number[] {
  const pairs = [0];
  for (let from = 0, count = 0; from < text.length; from += BLOCK) {
    count += lowSurrogates(text, from, Math.min(from + BLOCK, text.length));
    pairs.push(count);
  }
  return pairs;
}

function lowSurrogates(text: string, from: number, to: number): number {
  let count = 0;
  for (let at = from; at < to; at += 1) {
    if (isLowSurrogate(text.charCodeAt(at))) count += 1;
  }
  return count;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** Reports a problem of one source. */
export type Report = (range: SourceRange, details: ProblemDetails) => void;

/** Errors that are kept, and warnings: each takes some KiB, and a file of a few MiB can have one for each character. */
const MAX_PROBLEMS = 50_000;

/**
 * Collects problems, the first {@link MAX_PROBLEMS} of each severity. A problem of one place is reported once, however
 * many aliases lead to that place.
 */
export class ProblemReport {
  readonly #errors: Problem[] = [];
  readonly #warnings: Problem[] = [];
  readonly #reported = new Set<string>();

  get errorCount(): number {
    return this.#errors.length;
  }

  /** Reports problems of this source. */
  of(source: SourceDocument): Report {
    return (range, details) => this.add(source, range, details);
  }

  add(source: SourceDocument, range: SourceRange, details: ProblemDetails): void {
    const { code, message } = details;
    const { severity, advice } = { ...PROBLEMS[code], ...details };
    const problems = severity === 'error' ? this.#errors : this.#warnings;
    if (problems.length >= MAX_PROBLEMS) return;
    const identity = `${code} ${range.offset} ${source.file} ${message}`;
    if (this.#reported.has(identity)) return;
    this.#reported.add(identity);
    const problem: Problem = { code, severity, file: source.file, ...source.locate(range), message, advice };
    problems.push(problem);
  }

  /** Reports a problem in place of all others of its source, which are consequences of it. */
  replace(source: SourceDocument, range: SourceRange, details: ProblemDetails): void {
    for (const problems of [this.#errors, this.#warnings]) {
      const others = problems.filter(({ file }) => file !== source.file);
      problems.splice(0, problems.length, ...others);
    }
    this.add(source, range, details);
  }

  /**
   * All problems, sorted by file, line and column.
   * @param files paths in the order in which the files are sorted
   */
  finish(files: readonly string[]): { errors: Problem[]; warnings: Problem[] } {
    const rank = new Map(files.map((file, index) => [file, index]));
    function byPosition(a: Problem, b: Problem) {
      return (rank.get(a.file) ?? 0) - (rank.get(b.file) ?? 0) || a.line - b.line || a.column - b.column;
    }
    return { errors: this.#errors.toSorted(byPosition), warnings: this.#warnings.toSorted(byPosition) };
  }
}
