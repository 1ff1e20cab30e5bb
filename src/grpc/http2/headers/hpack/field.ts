/** What a field name means to HTTP/2 itself. */
export const FieldKind = {
  REGULAR: 0,
  METHOD: 1,
  SCHEME: 2,
  AUTHORITY: 3,
  PATH: 4,
  HOST: 5,
  CONTENT_LENGTH: 6,
  TE: 7,
  /** A pseudo-field that no request may carry: `:status`, or one that nobody defined. */
  FOREIGN_PSEUDO: 8,
  /** Connection-specific: has no place in HTTP/2 (RFC 9113, section 8.2.2). */
  CONNECTION_SPECIFIC: 9,
} as const;
export type FieldKind = (typeof FieldKind)[keyof typeof FieldKind];

/** What RFC 7541, section 4.1, adds to the bytes of name and value. */
export const FIELD_OVERHEAD = 32;

/** A field name, checked and recognised once, however many fields carry it. */
export class FieldName {
  constructor(
    readonly text: string,
    readonly kind: FieldKind,
    /** The application's own number for a name that it asked to recognise, else 0. */
    readonly tag: number,
    readonly isValid: boolean,
  ) {}
}

/** One field of a header list. Name and value hold a byte a character. Immutable, shared between requests. */
export class Field {
  /** Its size in a header list and in the table. */
  readonly cost: number;
  /** Whether a request that carries it is malformed, wherever it stands. */
  readonly isMalformed: boolean;

  constructor(
    readonly name: FieldName,
    readonly value: string,
    isValueValid: boolean,
  ) {
    this.cost = name.text.length + value.length + FIELD_OVERHEAD;
    this.isMalformed = !isValueValid || !name.isValid || !maySay(name.kind, value);
  }
}

/** At most 15 digits: what a number holds exactly, and more than any body has. */
const CONTENT_LENGTH = /^[0-9]{1,15}$/;

function maySay(kind: FieldKind, value: string): boolean {
  switch (kind) {
    case FieldKind.FOREIGN_PSEUDO:
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
