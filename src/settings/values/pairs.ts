import { splitList } from './list';
import { accepted, refused, type ValueType } from './value-type';

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
