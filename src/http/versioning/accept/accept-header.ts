import { parse } from 'content-type';

/** One media range of an `Accept` header. */
export interface AcceptedType {
  /** The vendor of `application/vnd.<vendor>`, in lower case; undefined for a general type. */
  readonly vendor: string | undefined;
  /** After the `+`, in lower case; undefined when there is none. */
  readonly suffix: string | undefined;
  /** The parameter `version` as it was sent; undefined when it is absent or empty. */
  readonly version: string | undefined;
  /** From 0 to 1. */
  readonly quality: number;
}

/** More media ranges than any client sends; what follows is ignored. */
const MAX_TYPES = 64;
const VENDOR_TREE = 'application/vnd.';
const QUALITY = /^(?:0(?:\.\d*)?|1(?:\.0*)?)$/;

/**
 * The media ranges of an `Accept` header, the most preferred first and otherwise as they were sent. White space around `+`, `;` and
 * `=`, any case, quoted values and empty items are accepted. A quality that is not a number from 0 to 1 counts as 1.
 */
export function parseAccept(header: string): readonly AcceptedType[] {
  const types: AcceptedType[] = [];
  for (let start = 0, items = 0; start <= header.length && items < MAX_TYPES; items += 1) {
    const { type, parameters, index } = parse(header, { comma: true, start });
    start = index + 1;
    if (type !== '') types.push(acceptedType(type, parameters.version, parameters.q));
  }
  return types.length === 1 ? types : types.sort((one, other) => other.quality - one.quality);
}

function acceptedType(type: string, version: string | undefined, q: string | undefined): AcceptedType {
  const isVendor = type.startsWith(VENDOR_TREE);
  const plus = isVendor ? type.indexOf('+') : -1;
  const end = plus === -1 ? type.length : plus;
  return {
    // Trimmed, because a regular expression for the white space would take quadratic time.
    vendor: isVendor ? type.slice(VENDOR_TREE.length, end).trim() : undefined,
    suffix: plus === -1 ? undefined : type.slice(plus + 1).trim(),
    version: version === '' ? undefined : version,
    quality: q !== undefined && QUALITY.test(q) ? Number(q) : 1,
  };
}
