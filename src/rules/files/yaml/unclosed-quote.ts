import { visit, type Document, type YAMLError } from 'yaml';
import type { ProblemDetails } from '../problems/problem';
import type { SourceRange, SourceText } from '../problems/source-text';

/** A quoted value that the library cannot read to its end. */
export interface UnclosedQuote {
  readonly range: SourceRange;
  readonly details: ProblemDetails;
  /** Where the value probably ends: errors before that are consequences. */
  readonly until: number;
}

/** What may follow a quoted value on its line. */
const AFTER_VALUE = /[ \t]*(?:[\r\n#,\]}]|$)/y;

/** Finds the quoted values of one document that have no closing quote. */
export class UnclosedQuotes {
  readonly #document: Document.Parsed;
  readonly #source: SourceText;
  /** The offsets of all quoted values, collected once, because thousands of them can be unclosed. */
  #offsets: readonly number[] | undefined;

  constructor(document: Document.Parsed, source: SourceText) {
    this.#document = document;
    this.#source = source;
  }

  /**
   * Describes the error that a quoted value has no closing quote; undefined for other errors. The library also reports it for a
   * value that is closed, but has a line that is not indented deeper than its key. Go-yaml 2 accepts such lines.
   */
  describe({ code, message, pos }: YAMLError): UnclosedQuote | undefined {
    if (code !== 'MISSING_CHAR' || !message.startsWith('Missing closing')) return undefined;
    this.#offsets ??= quotedOffsets(this.#document);
    const offset = lastBefore(this.#offsets, pos[0]);
    if (offset === undefined) return undefined;
    const range = { offset, end: offset + 1 };
    const closing = closingQuote(this.#source.text, offset);
    if (closing === undefined) return { range, details: NEVER_CLOSED, until: offset + 1 };
    const lastLine = this.#source.describe({ offset: closing, end: closing + 1 });
    return { range, details: notIndented(lastLine), until: closing + 1 };
  }
}

export const NEVER_CLOSED: ProblemDetails = {
  code: 'yaml-syntax',
  message: 'error loading config file: the quote that opens here is never closed',
  advice: 'Add the closing quote.',
};

/**
 * Whether a quoted value, in `text[start, end)`, ends with the quote that closes it. The library reads a value without one up to the end
 * of its line, and reports no error if that is an escaped quote: `"a\"` or `'a''`.
 */
export function isClosedQuote(text: string, start: number, end: number): boolean {
  const quote = text[start];
  const escape = quote === '"' ? '\\' : "'";
  let at = start + 1;
  while (at < end - 1) at += text[at] === escape ? 2 : 1;
  return at === end - 1 && text[at] === quote;
}

function notIndented(lastLine: string): ProblemDetails {
  return {
    code: 'yaml-syntax',
    message: 'error loading config file: a quoted value has a line that is not indented deeper than its key',
    advice: `Indent all lines of the value up to ${lastLine}, where the next quote is; if that is another value's, close this one.`,
  };
}

/** Where the quoted values of a document start, in ascending order. */
function quotedOffsets(document: Document.Parsed): readonly number[] {
  const offsets: number[] = [];
  visit(document, {
    Scalar(_, { type, range }) {
      if ((type === 'QUOTE_DOUBLE' || type === 'QUOTE_SINGLE') && range) offsets.push(range[0]);
    },
  });
  return offsets.toSorted((a, b) => a - b);
}

/** The last of ascending offsets that is below a limit. */
function lastBefore(offsets: readonly number[], limit: number): number | undefined {
  let low = 0;
  let high = offsets.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((offsets[middle] ?? 0) < limit) low = middle + 1;
    else high = middle;
  }
  return offsets[low - 1];
}

/** The offset of the quote that closes a value; undefined when there is none, or when the next quote is within a line. */
function closingQuote(text: string, opening: number): number | undefined {
  const quote = text[opening] ?? '';
  let at = opening + 1;
  while (at < text.length && (text[at] !== quote || isEscaped(text, at, quote))) {
    const isEscape = text[at] === quote || (quote === '"' && text[at] === '\\');
    at += isEscape ? 2 : 1;
  }
  AFTER_VALUE.lastIndex = at + 1;
  return at < text.length && AFTER_VALUE.test(text) ? at : undefined;
}

/** Whether a quote is the first of two single quotes, which stand for one. */
function isEscaped(text: string, at: number, quote: string): boolean {
  return quote === "'" && text[at + 1] === quote;
}
