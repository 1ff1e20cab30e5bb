/** Replaces what is between the markers `<!-- bench:NAME -->` and `<!-- /bench:NAME -->` of a page; fails when one is missing. */
export function replaceSections(page: string, sections: Readonly<Record<string, string>>): string {
  return Object.entries(sections).reduce((text, [name, content]) => {
    const [begin, end] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`];
    const [from, to] = [text.indexOf(begin), text.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`the page has no section between ${begin} and ${end}`);
    return `${text.slice(0, from + begin.length)}\n\n${content}\n\n${text.slice(to)}`;
  }, page);
}
