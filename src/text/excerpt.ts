/**
 * The beginning of a text that may have any length, for people: `…` follows where it is cut off. `length` is in UTF-16
 * code units.
 */
export function excerpt(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

/** A text of a caller or of a file as answers and pages have it: one of a megabyte in a list would delay everything. */
export function shortened(text: string): string {
  return excerpt(text, 256);
}

/** After how many characters no further item of a list follows: all of a log line is searched for secrets. */
const LONG_LIST = 8 * 1024;

/** The first items of a list that may have any length, at most `most`, each as it is described, and how many follow. */
export function listed<Item>(
  items: readonly Item[],
  { most, separator }: { readonly most: number; readonly separator: string },
  describe: (item: Item, index: number) => string,
): string {
  const texts: string[] = [];
  let characters = 0;
  for (const [index, item] of items.entries()) {
    if (index === most || characters >= LONG_LIST) {
      texts.push(`${items.length - index} more`);
      break;
    }
    const text = describe(item, index);
    texts.push(text);
    characters += text.length;
  }
  return texts.join(separator);
}
