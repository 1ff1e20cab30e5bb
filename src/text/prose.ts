/**
 * A text that is written as a template of several lines: a line break, with the blanks around it, is one blank.
 *
 * @param parts what is between the texts
 */
export function prose(texts: TemplateStringsArray, parts: readonly (string | number)[]): string {
  return String.raw({ raw: texts.map((text) => text.replaceAll(/\s*\n\s*/g, ' ')) }, ...parts).trim();
}
