import { Field, FieldKind, FieldName } from './field';
import { STATIC_TABLE } from './static-table';

const KINDS: ReadonlyMap<string, FieldKind> = new Map<string, FieldKind>([
  [':method', FieldKind.METHOD],
  [':scheme', FieldKind.SCHEME],
  [':authority', FieldKind.AUTHORITY],
  [':path', FieldKind.PATH],
  ['host', FieldKind.HOST],
  ['content-length', FieldKind.CONTENT_LENGTH],
  ['te', FieldKind.TE],
  ['connection', FieldKind.CONNECTION_SPECIFIC],
  ['proxy-connection', FieldKind.CONNECTION_SPECIFIC],
  ['keep-alive', FieldKind.CONNECTION_SPECIFIC],
  ['transfer-encoding', FieldKind.CONNECTION_SPECIFIC],
  ['upgrade', FieldKind.CONNECTION_SPECIFIC],
]);

const COLON = 0x3a;

/** RFC 9113, section 8.2.1: no control characters, spaces, upper case, DEL or non-ASCII; a colon only at the beginning. */
function isValidName(text: string): boolean {
  if (text.length === 0) return false;
  for (let at = 0; at < text.length; at += 1) {
    const byte = text.charCodeAt(at);
    if (byte <= 0x20 || byte >= 0x7f || (byte >= 0x41 && byte <= 0x5a)) return false;
    if (byte === COLON && at > 0) return false;
  }
  return true;
}

/**
 * The field names that a server recognises: those with a meaning in HTTP/2, those of the static table, and those that the
 * application reads. Only these are kept: any other name lives as long as the fields that carry it.
 */
export class FieldNames {
  /** Element n is entry n of the static table; element 0 is unused. */
  readonly staticFields: readonly Field[];
  readonly #known = new Map<string, FieldName>();

  /** `tags`: the names that the application reads, each with a number above 0. */
  constructor(tags: ReadonlyMap<string, number> = new Map()) {
    for (const text of [...KINDS.keys(), ...STATIC_TABLE.map(([name]) => name), ...tags.keys()]) {
      this.#known.set(text, this.#make(text, tags.get(text) ?? 0));
    }
    const unused = new Field(this.of('accept'), '', true);
    this.staticFields = [unused, ...STATIC_TABLE.map(([name, value]) => new Field(this.of(name), value, true))];
  }

  of(text: string): FieldName {
    return this.#known.get(text) ?? this.#make(text, 0);
  }

  #make(text: string, tag: number): FieldName {
    const kind = KINDS.get(text) ?? (text.startsWith(':') ? FieldKind.UNKNOWN_PSEUDO : FieldKind.REGULAR);
    return new FieldName(text, kind, tag, isValidName(text));
  }
}
