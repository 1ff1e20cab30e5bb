const TOKEN =
  /<(?<close>\/)?(?<name>[A-Za-z][\w:-]*)(?<attributes>(?: [\w:-]+="[^"<]*")*)(?<empty>\/)?>|(?<text>[^<]+)/gy;
const ENTITY = /&(?!(?:amp|lt|gt|quot);)/;

/** Fails unless the text is one well-formed element. Returns the names of all elements. */
export function elementsOf(svg: string): readonly string[] {
  const open: string[] = [];
  const names: string[] = [];
  TOKEN.lastIndex = 0;
  for (let at = 0; at < svg.length; at = TOKEN.lastIndex) {
    const groups = TOKEN.exec(svg)?.groups;
    if (groups === undefined) throw new Error(`not well-formed at ${at}: ${svg.slice(at, at + 60)}`);
    const { close, name, attributes = '', empty, text } = groups;
    if (ENTITY.test(text ?? attributes)) throw new Error(`a bare & at ${at}`);
    if (name === undefined) {
      if (open.length === 0 && text!.trim() !== '') throw new Error(`text outside of the element at ${at}`);
    } else if (close !== undefined) {
      if (open.pop() !== name) throw new Error(`</${name}> does not match at ${at}`);
    } else {
      if (open.length === 0 && names.length > 0) throw new Error(`a second element at ${at}`);
      names.push(name);
      if (empty === undefined) open.push(name);
    }
  }
  if (open.length > 0) throw new Error(`not closed: ${open.join(', ')}`);
  return names;
}
