/** The beginning of a text that may have any length, for people: `…` follows where it is cut off. `length` is in UTF-16 code units. */
export function excerpt(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
