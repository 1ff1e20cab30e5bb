import { type ValueType, accepted, refused } from './value-type';

/** The items of a comma-separated text, without the blanks around them. */
export function splitList(text: string): string[] {
  return text.split(',').map((item) => item.trim());
}

/** A comma-separated list; `fits` says whether an item is good. */
export function list(what: string, fits: (item: string) => boolean = () => true): ValueType<readonly string[]> {
  return {
    allowed: `list of ${what}`,
    read(text) {
      const items = splitList(text);
      const empty = items.indexOf('');
      if (empty >= 0) return refused(`item ${empty + 1} is empty`);
      const bad = items.findIndex((item) => !fits(item));
      return bad < 0 ? accepted(items) : refused(`item ${bad + 1} is none`);
    },
    write: (items) => items.join(','),
  };
}

/** Keys and their values, in the order given. */
export type Pairs = Readonly<Record<string, string>>;

interface PairForm {
  /** What stands between key and value; each item is cut at the first one. */
  readonly separator: ':' | '=';
  /** What is wrong with a key and a value that are not empty; never quotes them, they may be secrets. */
  readonly problem?: (key: string, value: string) => string | undefined;
  readonly emptyValues: 'allowed' | 'refused';
}

/** A comma-separated list of keys with their values. For a key given twice the last one counts, as in the Go service. */
export function pairs({ separator, problem, emptyValues }: PairForm): ValueType<Pairs> {
  return {
    allowed: `list of key${separator}value`,
    read(text) {
      const read = new Map<string, string>();
      let repeated: number | undefined;
      for (const [index, item] of splitList(text).entries()) {
        const where = `item ${index + 1}`;
        const cut = item.indexOf(separator);
        if (item === '') return refused(`${where} is empty`);
        if (cut < 0) return refused(`${where} has no "${separator}"`);
        const key = item.slice(0, cut).trim();
        const value = item.slice(cut + 1).trim();
        if (key === '') return refused(`${where} has no key before the "${separator}"`);
        if (value === '' && emptyValues === 'refused') return refused(`${where} has no value after the "${separator}"`);
        const wrong = problem?.(key, value);
        if (wrong !== undefined) return refused(`${where} ${wrong}`);
        if (read.has(key)) repeated = index + 1;
        read.set(key, value);
      }
      const notice = repeated === undefined ? undefined : `item ${repeated} repeats a key; its last value counts`;
      return accepted(Object.fromEntries(read), notice);
    },
    write: (value) =>
      Object.entries(value)
        .map(([key, text]) => key + separator + text)
        .join(','),
  };
}

/** Some of these would keep a call from starting, the others would be written over without a word. */
const KEPT_BY_PROTOCOL = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'content-length', 'host'],
  ...['te', 'content-type', 'user-agent'],
]);

/** Headers of a gRPC call, in the characters that its protocol allows; names are sent in lower case. */
export const grpcHeaders: ValueType<Pairs> = pairs({
  separator: ':',
  emptyValues: 'allowed',
  problem(key, value) {
    if (!/^[\da-z_.-]+$/i.test(key))
      return 'has a name that gRPC does not allow: letters, digits, "_", "." and "-" only';
    if (/^grpc-/i.test(key)) return 'has a name that begins with "grpc-", which gRPC keeps for itself';
    if (KEPT_BY_PROTOCOL.has(key.toLowerCase())) return 'has a name that HTTP/2 and gRPC keep for themselves';
    if (!/^[ -~]*$/.test(value)) return 'has a value with characters beyond printable ASCII';
    return undefined;
  },
});
