import type { SourceRange } from '../problems/source-text';
import type { YamlEntry, YamlMap, YamlNode, YamlScalar } from './yaml-tree';

/**
 * Reads the subset of YAML that most rule files use: block mappings and block lists, values on the line of their key or
 * dash, unquoted or in quotes, `{}` and `[]`, comments outside of these; and so all JSON. Returns `undefined` for
 * everything else and for anything that may be invalid: the YAML library then reads the document and reports its
 * errors.
 *
 * The reason is speed and memory: for 100,000 rules the library needs many seconds and most of a gigabyte. The result
 * is always the same as the library's; a property test compares the two. Of a mapping in a list at the top, as the
 * rules are, the text is read again each time its entries are asked for: those of 100,000 rules would take 140 MB, and
 * each is asked for once.
 */
export function parsePlainYaml(text: string): YamlMap | undefined {
  return new PlainReader(text).read();
}

/** Deeper documents are left to the library, which limits their depth. */
const MAX_OPEN = 40;

const SPACES = / */y;
/** What may follow a value on its line; `$` without the m flag is the end of the text. */
const LINE_END = /(?: *| +#[^\n\r]*)(?:\r?\n|$)/y;
const BLANK = /(?: *| *#[^\n\r]*)(?:\r?\n|$)/y;
const DASH = /- +(?=[^ \n\r#])/y;
const KEY = /([A-Za-z_][\w.-]{0,99}):(?: +(?=[^ \n\r#])|(?= *(?:\r?\n|$| #)))/y;
/** An unquoted value: no indicator first, no `: ` and no ` #` within, no white space other than the space. */
const PLAIN = /(?:[^\s\-?:,[\]{}#&*!|>'"%@`]|-(?=[^\s]))(?:[^\s:#]|:(?=[^\s])|#| +(?=[^\s:#]))*/y;
/** An unquoted value within `{}` or `[]`, whose punctuation ends it as well. */
const PLAIN_IN_FLOW =
  /(?:[^\s\-?:,[\]{}#&*!|>'"%@`]|-(?=[^\s,[\]{}]))(?:[^\s:#,[\]{}]|:(?=[^\s,[\]{}])|#| +(?=[^\s:#,[\]{}]))*/y;
const COLON = /: +(?=[^ \n\r#])/y;
const COLON_AFTER_QUOTE = / *: *(?=[^ \n\r#])/y;
const COMMA = / *,/y;
/** White space between the parts of a flow collection, up to the end of a line. */
const LINE_BREAK = /[ \t]*\r?\n/y;
const BLANKS = /[ \t]*/y;
/** With some escapes of JSON, each of which has the same meaning in YAML. */
const QUOTED = /"([^"\\\n\r\t]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\n\r\t]*){0,1000})"|'([^'\n\r\t]*)'/y;

interface OpenMap {
  readonly kind: 'map';
  readonly indent: number;
  readonly entries: YamlEntry[];
}

interface OpenList {
  readonly kind: 'list';
  readonly indent: number;
  readonly items: YamlNode[];
}

/** A mapping in a list at the top. */
class RereadMap implements YamlMap {
  readonly kind = 'map';
  readonly offset: number;
  readonly end: number;
  readonly #text: string;
  readonly #column: number;

  constructor(text: string, column: number, { offset, end }: SourceRange) {
    this.offset = offset;
    this.end = end;
    this.#text = text;
    this.#column = column;
  }

  get entries(): readonly YamlEntry[] {
    return new PlainReader(this.#text, this.offset).readItem(this.#column).entries;
  }
}

class PlainReader {
  readonly #text: string;
  #at: number;
  #lineStart = 0;
  #root: YamlMap | undefined;
  #markerSeen = false;
  readonly #open: (OpenMap | OpenList)[] = [];
  /** A key whose value has not been read yet. */
  #pendingKey: YamlScalar | undefined;
  /** Whether a dash was read whose item has not been read yet. */
  #itemExpected = false;

  /** @param at where reading begins */
  constructor(text: string, at = 0) {
    this.#text = text;
    this.#at = at;
  }

  read(): YamlMap | undefined {
    return this.#lines() ? this.#root : undefined;
  }

  /** Reads the mapping again that begins here as an item of a list, up to the first line that does not belong to it. */
  readItem(column: number): YamlMap {
    const items: YamlNode[] = [];
    // No line has this indentation, so that nothing is added to the list after the item.
    this.#open.push({ kind: 'list', indent: NaN, items });
    if (this.#text[this.#at] === '{') return this.#flow(0) as YamlMap;
    this.#itemExpected = true;
    this.#lineStart = this.#at - column;
    if (this.#line()) this.#lines();
    return items[0] as YamlMap;
  }

  /** Reads lines; false at one that is outside the subset, or does not belong to the item. */
  #lines(): boolean {
    while (this.#at < this.#text.length) {
      this.#lineStart = this.#at;
      if (this.#skip(BLANK)) continue;
      if (this.#root === undefined && !this.#markerSeen && this.#skipMarker()) continue;
      if (!this.#line()) return false;
    }
    this.#settle();
    return true;
  }

  /** Reads one line that is not blank; false when it is outside the subset. */
  #line(): boolean {
    this.#skip(SPACES);
    while (this.#text.charCodeAt(this.#at) === 0x2d) {
      const column = this.#at - this.#lineStart;
      const offset = this.#at;
      if (!this.#skip(DASH) || !this.#item(column, offset)) return false;
    }
    return this.#entry();
  }

  #item(column: number, offset: number): boolean {
    if (this.#itemExpected) return this.#startList(column, offset);
    if (this.#pendingKey !== undefined && this.#accepts(column)) return this.#startList(column, offset);
    this.#settle();
    this.#closeAbove(column);
    const list = this.#open.at(-1);
    if (list?.kind !== 'list' || list.indent !== column) return false;
    this.#itemExpected = true;
    return true;
  }

  #entry(): boolean {
    const column = this.#at - this.#lineStart;
    const offset = this.#at;
    KEY.lastIndex = offset;
    const name = KEY.exec(this.#text)?.[1];
    if (name === undefined) return this.#itemExpected ? this.#lineItem(column) : this.#flowRoot();
    this.#at = KEY.lastIndex;
    const map = this.#mapAt(column, offset);
    if (map === undefined) return false;
    const key: YamlScalar = {
      kind: 'scalar',
      text: name,
      plain: true,
      tag: undefined,
      offset,
      end: offset + name.length,
    };
    const value = this.#flow(0) ?? this.#scalar(PLAIN);
    if (!this.#skip(LINE_END)) return false;
    if (value === undefined) this.#pendingKey = key;
    else map.entries.push({ key, value });
    return true;
  }

  /** Reads a document that is a mapping in braces, as JSON is. */
  #flowRoot(): boolean {
    if (this.#root !== undefined) return false;
    const root = this.#flow(0);
    if (root?.kind !== 'map' || !this.#skip(LINE_END)) return false;
    this.#root = root;
    return true;
  }

  /** Reads an item that is not a block: `- a`, `- { a: b }`. */
  #lineItem(column: number): boolean {
    const list = this.#open.at(-1);
    const item = this.#flow(0) ?? this.#scalar(PLAIN);
    if (list?.kind !== 'list' || item === undefined || !this.#skip(LINE_END)) return false;
    list.items.push(item.kind === 'map' ? this.#itemMap(column, item) : item);
    this.#itemExpected = false;
    return true;
  }

  /** A mapping in a list: one at the top without its entries. @param depth that of the mapping in flow collections */
  #itemMap(column: number, map: YamlMap, depth = 0): YamlMap {
    return this.#open.length + depth === 2 ? new RereadMap(this.#text, column, map) : map;
  }

  /** The mapping that a key in this column belongs to; a new one where a value or an item is expected. */
  #mapAt(column: number, offset: number): OpenMap | undefined {
    const top = this.#open.at(-1);
    if (this.#itemExpected) return this.#startMap(column, offset);
    if (this.#root === undefined) return column === 0 ? this.#startMap(0, offset) : undefined;
    if (this.#pendingKey !== undefined && column > (top?.indent ?? -1)) return this.#startMap(column, offset);
    this.#settle();
    this.#closeAbove(column);
    if (this.#open.at(-1)?.kind === 'list' && this.#open.at(-1)?.indent === column) this.#open.pop();
    const map = this.#open.at(-1);
    return map?.kind === 'map' && map.indent === column ? map : undefined;
  }

  /** Whether a list may start in this column as the expected value: it may have the indentation of its key. */
  #accepts(column: number): boolean {
    return column >= (this.#open.at(-1)?.indent ?? 0);
  }

  #startMap(indent: number, offset: number): OpenMap | undefined {
    const entries: YamlEntry[] = [];
    const node: YamlMap = { kind: 'map', entries, offset, end: offset + 1 };
    this.#root ??= node;
    return this.#enter({ kind: 'map', indent, entries }, this.#itemExpected ? this.#itemMap(indent, node) : node);
  }

  #startList(indent: number, offset: number): boolean {
    const items: YamlNode[] = [];
    const entered = this.#enter({ kind: 'list', indent, items }, { kind: 'list', items, offset, end: offset + 1 });
    this.#itemExpected = true;
    return entered !== undefined;
  }

  /** Adds a collection where a value or an item is expected. */
  #enter<Open extends OpenMap | OpenList>(collection: Open, node: YamlNode): Open | undefined {
    if (this.#open.length >= MAX_OPEN) return undefined;
    const top = this.#open.at(-1);
    if (top?.kind === 'list') top.items.push(node);
    else if (top?.kind === 'map' && this.#pendingKey !== undefined)
      top.entries.push({ key: this.#pendingKey, value: node });
    this.#pendingKey = undefined;
    this.#itemExpected = false;
    this.#open.push(collection);
    return collection;
  }

  /** Gives a key without a value an empty one. */
  #settle(): void {
    const top = this.#open.at(-1);
    if (this.#pendingKey !== undefined && top?.kind === 'map') {
      const key = this.#pendingKey;
      top.entries.push({ key, value: { ...key, text: '' } });
    }
    this.#pendingKey = undefined;
  }

  #closeAbove(column: number): void {
    while ((this.#open.at(-1)?.indent ?? -1) > column) this.#open.pop();
  }

  /** A mapping or list in braces or brackets; undefined, without advancing, when there is none in the subset. */
  #flow(depth: number): YamlNode | undefined {
    const offset = this.#at;
    const opening = this.#text[offset];
    if ((opening !== '{' && opening !== '[') || depth >= MAX_OPEN) return undefined;
    this.#at += 1;
    const node = opening === '{' ? this.#flowMap(offset, depth) : this.#flowList(offset, depth);
    if (node === undefined) this.#at = offset;
    return node;
  }

  #flowMap(offset: number, depth: number): YamlNode | undefined {
    const entries: YamlEntry[] = [];
    while (this.#continues('}', entries.length)) {
      const key = this.#scalar(PLAIN_IN_FLOW);
      // Longer keys could exceed the library's limit on the length of keys.
      if (key === undefined || key.end - key.offset > 100) return undefined;
      if (!this.#skip(key.plain ? COLON : COLON_AFTER_QUOTE)) return undefined;
      const value = this.#flow(depth + 1) ?? this.#scalar(PLAIN_IN_FLOW);
      if (value === undefined) return undefined;
      entries.push({ key, value });
    }
    return this.#closes('}') ? { kind: 'map', entries, offset, end: this.#at } : undefined;
  }

  #flowList(offset: number, depth: number): YamlNode | undefined {
    const items: YamlNode[] = [];
    while (this.#continues(']', items.length)) {
      const item = this.#flow(depth + 1) ?? this.#scalar(PLAIN_IN_FLOW);
      if (item === undefined) return undefined;
      items.push(item.kind === 'map' ? this.#itemMap(0, item, depth + 1) : item);
    }
    return this.#closes(']') ? { kind: 'list', items, offset, end: this.#at } : undefined;
  }

  /**
   * Moves to the next part of a flow collection that has some; false at its end, and before what is not in the subset.
   */
  #continues(bracket: string, parts: number): boolean {
    if (!this.#gap() || this.#text[this.#at] === bracket) return false;
    return parts === 0 || (this.#skip(COMMA) && this.#gap());
  }

  #closes(bracket: string): boolean {
    if (this.#text[this.#at] !== bracket) return false;
    this.#at += 1;
    return true;
  }

  /** Skips white space in a flow collection; false, without advancing, at a line that may not belong to it. */
  #gap(): boolean {
    const before = this.#at;
    let line = -1;
    while (this.#skip(LINE_BREAK)) line = this.#at;
    this.#skip(SPACES);
    const indent = this.#at - line;
    this.#skip(BLANKS);
    if (line < 0) return true;
    // A next line must be indented deeper than the block around it; `---` or `...` at its beginning ends the document.
    const isOutside = indent <= (this.#open.at(-1)?.indent ?? -1);
    if (!isOutside && !(indent === 0 && /[-.]/.test(this.#text[line] ?? ''))) return true;
    this.#at = before;
    return false;
  }

  #scalar(plain: RegExp): YamlScalar | undefined {
    const offset = this.#at;
    QUOTED.lastIndex = offset;
    const quoted = QUOTED.exec(this.#text);
    if (quoted !== null) {
      this.#at = QUOTED.lastIndex;
      return {
        kind: 'scalar',
        text: quoted[1]?.includes('\\') ? (JSON.parse(quoted[0]) as string) : (quoted[1] ?? quoted[2] ?? ''),
        plain: false,
        tag: undefined,
        offset,
        end: this.#at,
      };
    }
    if (!this.#skip(plain)) return undefined;
    return {
      kind: 'scalar',
      text: this.#text.slice(offset, this.#at),
      plain: true,
      tag: undefined,
      offset,
      end: this.#at,
    };
  }

  #skipMarker(): boolean {
    const found = this.#text.startsWith('---', this.#at);
    if (!found) return false;
    this.#at += 3;
    this.#markerSeen = this.#skip(LINE_END);
    if (!this.#markerSeen) this.#at -= 3;
    return this.#markerSeen;
  }

  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return false;
    this.#at = pattern.lastIndex;
    return true;
  }
}
