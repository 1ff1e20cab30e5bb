import type { ListedDomain, ListedRule, RuleListing } from '../../streams/ports/operator';

/** The depth of a domain, whose rules have the depth 0. */
const DOMAIN = -1;

/** Writes a listing as one JSON object, in which rules contain their nested rules. */
export async function* writeRules({ items, ...origin }: RuleListing): AsyncIterableIterator<string> {
  yield `${JSON.stringify(origin).slice(0, -1)},"domains":[`;
  // The depth of the item before; its list of descriptors is still open.
  let last: number | undefined;
  for await (const part of items) {
    let text = '';
    for (const item of part) {
      const depth = 'domain' in item ? DOMAIN : item.depth;
      if (last !== undefined && depth <= last) text += `${']}'.repeat(last - depth + 1)},`;
      text += beginItem(item);
      last = depth;
    }
    yield text;
  }
  yield `${last === undefined ? '' : ']}'.repeat(last - DOMAIN + 1)}]}\n`;
}

function beginItem(item: ListedDomain | ListedRule): string {
  const { depth: _, ...members } = { depth: 0, ...item };
  return `${JSON.stringify(members).slice(0, -1)},"descriptors":[`;
}
