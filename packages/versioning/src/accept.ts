import { parse } from 'content-type';

/** What a request can be answered with. */
export interface Offer {
  /** In lower case. */
  readonly vendor: string;
  readonly defaultVersion: number;
  /** In ascending order. */
  readonly versions: readonly number[];
  /** What may follow the `+` of the media type; JSON always may. */
  readonly formats: ReadonlySet<string>;
}

/** What a request is answered with. */
export interface Choice {
  readonly version: number;
  /** The format of the media type that has decided; undefined when it names none. */
  readonly format: string | undefined;
}

/** One media type of an `Accept` header. */
interface AcceptedType {
  /** The vendor of `application/vnd.<vendor>`, in lower case; undefined for a general type. */
  readonly vendor: string | undefined;
  /** After the `+`, in lower case; undefined when there is none. */
  readonly format: string | undefined;
  /** The parameter `version` as it was sent. */
  readonly version: string | undefined;
  /** From 0 to 1. */
  readonly quality: number;
}

/** More media types than any client sends; what follows is ignored. */
const MAX_TYPES = 64;
const VENDOR_TREE = 'application/vnd.';
const QUALITY = /^(?:0(?:\.\d*)?|1(?:\.0*)?)$/;
/** `02` and `2.0` are not versions. */
const VERSION = /^[1-9]\d*$/;

/**
 * The version and format that a request receives.
 *
 * - Types of our vendor decide when there are any: the most preferred one that can be served, where one without a
 *   version means the default version. A version or format that is not declared cannot be served.
 * - Without them, any general type (such as application/json or a range) means the default version.
 * - No header, or an empty one, means the default version.
 *
 * Types with quality 0 are not acceptable and count for nothing.
 *
 * @param header the `Accept` header; empty when there is none
 * @returns undefined when the client accepts none of the versions
 */
export function choose(header: string, offer: Offer): Choice | undefined {
  const byDefault = { version: offer.defaultVersion, format: undefined };
  if (header === '' || header === '*/*') return byDefault;
  const types = parseAccept(header);
  if (types.length === 0) return byDefault;
  const acceptable = types.filter(({ quality }) => quality > 0);
  const own = acceptable.filter(({ vendor }) => vendor === offer.vendor);
  if (own.length > 0) return own.map((type) => served(type, offer)).find((choice) => choice !== undefined);
  return acceptable.some(({ vendor }) => vendor === undefined) ? byDefault : undefined;
}

function served({ version, format }: AcceptedType, offer: Offer): Choice | undefined {
  if (format !== undefined && format !== 'json' && !offer.formats.has(format)) return undefined;
  if (version === undefined || version === '') return { version: offer.defaultVersion, format };
  if (!VERSION.test(version) || !offer.versions.includes(Number(version))) return undefined;
  return { version: Number(version), format };
}

/**
 * The media types of an `Accept` header, the most preferred first and otherwise as they were sent. White space around
 * `+`, `;` and `=`, any case, quoted values and empty items are accepted. A quality that is not a number from 0 to 1
 * counts as 1.
 */
function parseAccept(header: string): readonly AcceptedType[] {
  const types: AcceptedType[] = [];
  for (let start = 0, items = 0; start <= header.length && items < MAX_TYPES; items += 1) {
    const { type, parameters, index } = parse(header, { comma: true, start });
    start = index + 1;
    if (type !== '') types.push(acceptedType(type, parameters.version, parameters.q));
  }
  return types.sort((one, other) => other.quality - one.quality);
}

function acceptedType(type: string, version: string | undefined, q: string | undefined): AcceptedType {
  const quality = q !== undefined && QUALITY.test(q) ? Number(q) : 1;
  if (!type.startsWith(VENDOR_TREE)) return { vendor: undefined, format: undefined, version, quality };
  const [vendor = '', ...formats] = type.slice(VENDOR_TREE.length).split('+');
  // Trimmed, because a regular expression for the white space would take quadratic time.
  return {
    vendor: vendor.trim(),
    format: formats.length === 0 ? undefined : formats.join('+').trim(),
    version,
    quality,
  };
}

/** For example `application/vnd.acme+json; version=2`. */
export function mediaType({ vendor }: Offer, version: number, format: string): string {
  return `application/vnd.${vendor}+${format}; version=${version}`;
}

/** The media types of all versions and formats. */
export function mediaTypes(offer: Offer): readonly string[] {
  const formats = new Set(['json', ...offer.formats]);
  return offer.versions.flatMap((version) => [...formats].map((format) => mediaType(offer, version, format)));
}
