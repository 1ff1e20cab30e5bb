/** A request to explain, as a person writes it. */
export interface Written {
  readonly domain: string;
  /** Each is `key=value,key2=value2`, or JSON. */
  readonly descriptors: readonly string[];
  readonly hits: string;
  /** The limit to try. */
  readonly limit: string;
}

/** @throws Error that says what is wrong, in one sentence */
export function bodyOf({ domain, descriptors, hits, limit }: Written): string {
  return JSON.stringify({
    domain,
    descriptors: descriptors.map(descriptorOf),
    ...(hits !== '' && { hitsAddend: numberOf(hits) }),
    ...(limit !== '' && { limit: numberOf(limit) }),
  });
}

/** A descriptor as the API reads it, in the forms of `GET /api/counters`. */
export function descriptorOf(text: string): unknown {
  return text.startsWith('{') ? parsed(text) : { entries: text.split(',').map(entryOf) };
}

function entryOf(pair: string) {
  const equals = pair.indexOf('=');
  if (equals < 1) throw new Error(`write a descriptor as key=value,key2=value2 or as JSON, not "${pair.slice(0, 40)}"`);
  return { key: pair.slice(0, equals), value: pair.slice(equals + 1) };
}

function numberOf(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  throw new Error(`write a whole number, not "${text.slice(0, 40)}"`);
}

function parsed(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text) as unknown) as Record<string, unknown>;
  } catch (error) {
    throw new Error('this is no JSON', { cause: error });
  }
}

/**
 * Reads what was pasted: a request in JSON, a command with one, such as that of grpcurl or curl, or a line of the
 * decision log.
 *
 * @throws Error that says what is wrong, in one sentence
 */
export function readPasted(text: string): Written {
  const [start, end] = [text.indexOf('{'), text.lastIndexOf('}')];
  if (start === -1 || end < start) throw new Error('there is no JSON: it begins with { and ends with }');
  const { domain, descriptors, hitsAddend, hits_addend: hits = hitsAddend, limit } = parsed(text.slice(start, end + 1));
  if (typeof domain !== 'string' || !Array.isArray(descriptors)) throw new Error('it has no domain or no descriptors');
  const written = descriptors.map((each: unknown) => writtenDescriptor(Object(each) as Record<string, unknown>));
  return { domain, descriptors: written, hits: numberText(hits), limit: numberText(limit) };
}

/** A number of proto3 JSON may be in quotes. */
function numberText(value: unknown): string {
  return typeof value === 'number' || typeof value === 'string' ? String(value) : '';
}

const FIELDS = ['limit', 'hitsAddend', 'hits_addend', 'isNegativeHits', 'is_negative_hits'];

/**
 * A descriptor as it is written. Members that only the decision log has are left out; in it, an entry is `key=value`.
 */
export function writtenDescriptor(descriptor: Readonly<Record<string, unknown>>): string {
  const listed = Array.isArray(descriptor['entries']) ? (descriptor['entries'] as readonly unknown[]) : [];
  const entries = listed.map((entry): { readonly key?: string; readonly value?: string } => {
    return typeof entry === 'string' ? entryOf(entry) : Object(entry);
  });
  const further = FIELDS.filter((name) => descriptor[name] !== undefined).map((name) => [name, descriptor[name]]);
  const isPlain = entries.every(({ key = '', value = '' }) => /^[^={,][^=,]*$/.test(key) && !/[,\n]/.test(value));
  if (!isPlain || entries.length === 0 || further.length > 0) {
    return JSON.stringify({ entries, ...Object.fromEntries(further) });
  }
  return entries.map(({ key, value = '' }) => `${key}=${value}`).join(',');
}

/**
 * The command that explains the same request in a shell: that of weir-admin, or of curl for what weir-admin does not
 * know.
 */
export function commandOf(written: Written): string {
  const { domain, descriptors, hits, limit } = written;
  if (limit !== '' || descriptors.some((descriptor) => descriptor.startsWith('{'))) {
    return `curl -s ${quoted(new URL('../api/explanations', location.href).href)} -d ${quoted(bodyOf(written))}`;
  }
  const flags = descriptors.map((descriptor) => `-descriptors ${quoted(descriptor)}`);
  const addend = hits === '' ? [] : [`-hits_addend ${hits}`];
  return ['weir-admin explain', `-domain ${quoted(domain)}`, ...flags, ...addend].join(' ');
}

function quoted(text: string): string {
  return /^[\w=,./:-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
