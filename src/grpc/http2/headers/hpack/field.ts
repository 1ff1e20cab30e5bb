/** The meaning of a field name in HTTP/2. */
export const FieldKind = {
  REGULAR: 0,
  METHOD: 1,
  SCHEME: 2,
  AUTHORITY: 3,
  PATH: 4,
  HOST: 5,
  CONTENT_LENGTH: 6,
  TE: 7,
  /** A pseudo-header field that a request must not have: `:status`, or one that is not defined. */
  UNKNOWN_PSEUDO: 8,
  /** A connection-specific field, which HTTP/2 prohibits (RFC 9113, section 8.2.2). */
  CONNECTION_SPECIFIC: 9,
} as const;
export type FieldKind = (typeof FieldKind)[keyof typeof FieldKind];

/** The size of a field is its bytes of name and value plus this overhead (RFC 7541, section 4.1). */
export const FIELD_OVERHEAD = 32;

/** A field name. A recognised name is validated once and shared by all fields that carry it. */
export class FieldName {
  constructor(
    readonly text: string,
    readonly kind: FieldKind,
    /** The application's number for a name that it reads, otherwise 0. */
    readonly tag: number,
    readonly isValid: boolean,
  ) {}
}

/** One field of a header list. Each character of name and value is one byte. Immutable and shared between requests. */
export class Field {
  /** Its size in a header list and in the dynamic table. */
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
