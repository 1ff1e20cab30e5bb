import { STATIC_TABLE } from './static-table';

/** The meaning of a field name in HTTP/2. */
export const FieldKind = {
  REGULAR: 0,
  TE: 1,
  HOST: 2,
  CONTENT_LENGTH: 3,
  METHOD: 4,
  SCHEME: 5,
  AUTHORITY: 6,
  PATH: 7,
  /** A pseudo-header field that a request must not have: `:status`, or one that is not defined. */
  UNKNOWN_PSEUDO: 8,
  /** A connection-specific field, which HTTP/2 prohibits (RFC 9113, section 8.2.2). */
  CONNECTION_SPECIFIC: 9,
} as const;
export type FieldKind = (typeof FieldKind)[keyof typeof FieldKind];

/** The size of a field is its bytes of name and value plus this overhead (RFC 7541, section 4.1). */
export const FIELD_OVERHEAD = 32;

/** A field name. A known name is validated once and shared by all fields that carry it. */
export class FieldName {
  readonly kind: FieldKind;
  readonly isValid: boolean;

  constructor(readonly text: string) {
    this.kind = KINDS.get(text) ?? (text.startsWith(':') ? FieldKind.UNKNOWN_PSEUDO : FieldKind.REGULAR);
    this.isValid = isValidName(text);
  }
}

/** One field of a header list. Each character of name and value is one byte. Immutable and shared between requests. */
export class Field {
  /** The size of the field in a header list and in the dynamic table. */
  readonly cost: number;
  /** Whether the field makes a request malformed, regardless of its position. */
  readonly isMalformed: boolean;

  constructor(
    readonly name: FieldName,
    readonly value: string,
    isValueValid: boolean,
  ) {
    this.cost = name.text.length + value.length + FIELD_OVERHEAD;
    this.isMalformed = !isValueValid || !name.isValid || !isPermitted(name.kind, value);
  }
}

/** At most 15 digits: a number represents them exactly, and no body is longer. */
const CONTENT_LENGTH = /^[0-9]{1,15}$/;

function isPermitted(kind: FieldKind, value: string): boolean {
  switch (kind) {
    case FieldKind.UNKNOWN_PSEUDO:
    case FieldKind.CONNECTION_SPECIFIC:
      return false;
    case FieldKind.TE:
      return value === 'trailers';
    case FieldKind.PATH:
      return value !== '';
    case FieldKind.CONTENT_LENGTH:
      return CONTENT_LENGTH.test(value);
    default:
      return true;
  }
}

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

/**
 * RFC 9113, section 8.2.1: no control characters, spaces, upper case, DEL or non-ASCII; a colon only at the beginning.
 */
function isValidName(text: string): boolean {
  if (text.length === 0) return false;
  for (let at = 0; at < text.length; at += 1) {
    const byte = text.charCodeAt(at);
    if (byte <= 0x20 || byte >= 0x7f || (byte >= 0x41 && byte <= 0x5a)) return false;
    if (byte === COLON && at > 0) return false;
  }
  return true;
}

/** The names that most requests have; any other lives as long as the fields that carry it. */
const KNOWN: ReadonlyMap<string, FieldName> = new Map(
  [...KINDS.keys(), ...STATIC_TABLE.map(([name]) => name), 'grpc-timeout'].map((text) => [text, new FieldName(text)]),
);

export function fieldName(text: string): FieldName {
  return KNOWN.get(text) ?? new FieldName(text);
}

/** The fields of the static table. Element n - 1 is entry n. */
export const STATIC_FIELDS: readonly Field[] = STATIC_TABLE.map(
  ([name, value]) => new Field(fieldName(name), value, true),
);
