import { Lexer } from 'yaml';

/** The line and paragraph separators: line breaks of YAML 1.1, each one code unit. */
const SEPARATORS = /[\u2028\u2029]/g;

/**
 * Replaces the line and paragraph separators outside of quoted values by LF. The Go service breaks lines at them, and keeps those of a
 * quoted value; the YAML library reads all of them as text. Offsets stay as they are.
 */
export function breakAtSeparators(text: string): string {
  if (text.search(SEPARATORS) === -1) return text;
  let broken = '';
  for (const lexeme of new Lexer().lex(text)) {
    if (LEXER_MARKS.has(lexeme)) continue;
    const isQuoted = lexeme.startsWith('"') || lexeme.startsWith("'");
    broken += isQuoted ? lexeme : lexeme.replaceAll(SEPARATORS, '\n');
  }
  return broken;
}

/** What the lexer inserts: the start of a document, a missing end of a flow collection, and the mark of a scalar without quotes. */
const LEXER_MARKS: ReadonlySet<string> = new Set(['\u0002', '\u0018', '\u001f']);
