import { accepted, refused, type ValueType } from './value-type';

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
