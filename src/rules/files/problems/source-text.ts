import type { Problem } from './problem';

/** A piece of a text: UTF-16 offsets from its beginning, the end not included. */
export interface Place {
  readonly offset: number;
  readonly end: number;
}

/** What rules are read from, and where in it things stand. */
export interface Source {
  /** Its name, for messages. */
  readonly file: string;
  /** Where a place is, as a problem says it. */
  locate(place: Place): Pick<Problem, 'line' | 'column' | 'sourceLine' | 'mark'>;
  /** A place in a few words, for a message that points at a second one: `line 7`. */
  nameOf(place: Place): string;
}

/** Longer lines are shown in part: a rule file on one line is megabytes long. */
const LONGEST_LINE_SHOWN = 160;
/** How much of a long line is shown before the place. */
const SHOWN_BEFORE = 60;
const CUT = '…';
const BLOCK = 1024;

/** A rule file's text, and where in it things stand. */
export class SourceText implements Source {
  /** Offsets at which lines begin, found when the first position is asked for: a file without problems needs none. */
  #lineStarts: number[] | undefined;
  /** For each block of the text, how many surrogate pairs end before it. */
  #pairs: number[] | undefined;

  constructor(
    readonly file: string,
    readonly text: string,
  ) {}

  /** Line, column and the line's text at a place. */
  locate({ offset, end }: Place): Pick<Problem, 'line' | 'column' | 'sourceLine' | 'mark'> {
    const line = this.lineOf(offset);
    const starts = this.#lineStarts ?? [];
    const start = starts[line - 1] ?? 0;
    const next = starts[line] ?? this.text.length + 1;
    const stop = this.text[next - 2] === '\r' ? next - 2 : next - 1;
    const length = Math.max(1, Math.min(end, stop) - offset);
    return {
      line,
      column: offset - this.#pairsBefore(offset) - (start - this.#pairsBefore(start)) + 1,
      ...this.#excerpt(start, stop, offset, length),
    };
  }

  nameOf({ offset }: Place): string {
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

  /** Surrogate pairs that end before an offset: each is two units of the text, but one character. */
  #pairsBefore(offset: number): number {
    this.#pairs ??= pairsByBlock(this.text);
    const block = Math.floor(offset / BLOCK);
    return (this.#pairs[block] ?? 0) + lowSurrogates(this.text, block * BLOCK, offset);
  }

  #excerpt(start: number, stop: number, offset: number, length: number): Pick<Problem, 'sourceLine' | 'mark'> {
    if (stop - start <= LONGEST_LINE_SHOWN) {
      return { sourceLine: this.text.slice(start, stop), mark: { start: offset - start, length } };
    }
    const from = this.#characterStart(Math.max(start, Math.min(offset - SHOWN_BEFORE, stop - LONGEST_LINE_SHOWN)));
    const to = this.#characterStart(Math.min(stop, from + LONGEST_LINE_SHOWN));
    const before = from > start ? CUT : '';
    return {
      sourceLine: before + this.text.slice(from, to) + (to < stop ? CUT : ''),
      mark: { start: before.length + offset - from, length: Math.min(length, to - offset) },
    };
  }

  /** The offset itself, or the one before it when it falls between the halves of a surrogate pair. */
  #characterStart(offset: number): number {
    return isLowSurrogate(this.text.charCodeAt(offset)) ? offset - 1 : offset;
  }
}

function lineStartsOf(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

/** Counting is by blocks, so that a position on a line of megabytes does not cost a walk along the line. */
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
