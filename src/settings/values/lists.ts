import { type ValueType, accepted, rejected } from './value-type';

/** The items of a comma-separated text, trimmed. */
export function splitList(text: string): string[] {
  return text.split(',').map((item) => item.trim());
}

/** A comma-separated list of `what`; `isValid` checks one item. */
export function list(what: string, isValid: (item: string) => boolean = () => true): ValueType<readonly string[]> {
  return {
    allowed: `list of ${what}`,
    parse(text) {
      const items = splitList(text);
      const empty = items.indexOf('');
      if (empty >= 0) return rejected(`item ${empty + 1} is empty`);
      const invalid = items.findIndex((item) => !isValid(item));
      return invalid < 0 ? accepted(items) : rejected(`item ${invalid + 1} is invalid`);
    },
    format: (items) => items.join(','),
  };
}

const TOKEN_LINE = /^(?<name>[\w.@-]{1,64})\s+(?<role>view|operate|peer)\s+(?<digest>sha256:[\da-f]{64})$/;

/** Tokens of operators, a line for each: the role and the digest of each by its name. */
export const operatorTokens: ValueType<Pairs> = {
  allowed: 'lines of name, role (view, operate or peer) and sha256:HEX',
  secret: 'value',
  parse(text) {
    const tokens: Record<string, string> = Object.create(null);
    for (const [index, given] of text.split('\n').entries()) {
      const line = given.trim();
      if (line === '' || line.startsWith('#')) continue;
      const { name, role, digest } = TOKEN_LINE.exec(line)?.groups ?? {};
      if (name === undefined) return rejected(`line ${index + 1} is invalid; weir-admin token makes one`);
      if (name in tokens) return rejected(`line ${index + 1} has the name of an earlier one`);
      tokens[name] = `${role} ${digest}`;
    }
    return Object.keys(tokens).length === 0 ? rejected('it has no line of a token') : accepted(tokens);
  },
  format: (tokens) =>
    Object.entries(tokens)
      .map(([name, token]) => `${name} ${token}`)
      .join('\n'),
};

export const settingNames = list('names of settings', (name) => /^\w{1,64}$/.test(name));

/** Keys and values, in the order in which they were given. */
export type Pairs = Readonly<Record<string, string>>;

interface PairForm {
  /** Separates key and value; each item is split at its first separator. */
  readonly separator: ':' | '=';
  /** What is wrong with a key and value; never quotes them, because they may be secrets. */
  readonly problem?: (key: string, value: string) => string | undefined;
  readonly emptyValues: 'allowed' | 'rejected';
}

/** A comma-separated list of key-value pairs. When a key is repeated, its last value is used, as in the Go service. */
export function pairs({ separator, problem, emptyValues }: PairForm): ValueType<Pairs> {
  return {
    allowed: `list of key${separator}value`,
    parse(text) {
      const values = new Map<string, string>();
      let repeated: number | undefined;
      for (const [index, item] of splitList(text).entries()) {
        const where = `item ${index + 1}`;
        const split = item.indexOf(separator);
        if (item === '') return rejected(`${where} is empty`);
        if (split < 0) return rejected(`${where} has no "${separator}"`);
        const key = item.slice(0, split).trim();
        const value = item.slice(split + 1).trim();
        if (key === '') return rejected(`${where} has no key before the "${separator}"`);
        if (value === '' && emptyValues === 'rejected')
          return rejected(`${where} has no value after the "${separator}"`);
        const wrong = problem?.(key, value);
        if (wrong !== undefined) return rejected(`${where} ${wrong}`);
        if (values.has(key)) repeated = index + 1;
        values.set(key, value);
      }
      const notice = repeated === undefined ? undefined : `item ${repeated} repeats a key; its last value is used`;
      return accepted(Object.fromEntries(values), notice);
    },
    format: (value) =>
      Object.entries(value)
        .map(([key, text]) => key + separator + text)
        .join(','),
  };
}

/** The tags of a mogrifier. */
export const mogrifierTags = pairs({ separator: ':', emptyValues: 'rejected' });

/** Some of these names would make the call fail to start, the others would be silently overwritten. */
const RESERVED_NAMES = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'content-length', 'host'],
  ...['te', 'content-type', 'user-agent'],
]);

/** Headers of a gRPC call, limited to the characters that gRPC allows; names are sent in lower case. */
export const grpcHeaders: ValueType<Pairs> = {
  ...pairs({ separator: ':', emptyValues: 'allowed', problem: headerProblem }),
  // Intended for authorization headers.
  secret: 'value',
};

function headerProblem(key: string, value: string): string | undefined {
  if (!/^[\da-z_.-]+$/i.test(key)) return 'has a name with characters other than letters, digits, "_", "." and "-"';
  if (/^grpc-/i.test(key)) return 'has a name that begins with "grpc-", which gRPC reserves';
  if (RESERVED_NAMES.has(key.toLowerCase())) return 'has a name that HTTP/2 or gRPC reserves';
  return /^[ -~]*$/.test(value) ? undefined : 'has a value with characters other than printable ASCII';
}

/**
 * Headers of an OTLP exporter: `key=value` pairs, percent-encoded. Items that are no pairs are left out, because the
 * exporter ignores them in its variables.
 */
export const otlpHeaders: ValueType<Readonly<Record<string, string>>> = {
  allowed: 'list of key=value, percent-encoded',
  secret: 'value',
  parse: (given) => accepted(Object.fromEntries(splitList(given).flatMap(pairOf))),
  format: (headers) =>
    Object.entries(headers)
      .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
      .join(','),
};

function pairOf(item: string): readonly (readonly [name: string, value: string])[] {
  const split = item.indexOf('=');
  const name = percentDecoded(item.slice(0, Math.max(split, 0)).trim());
  return name === '' ? [] : [[name, percentDecoded(item.slice(split + 1).trim())]];
}

/** The text without percent-encoding; as it is, if that is broken. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
