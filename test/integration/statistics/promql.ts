/** A selector of an expression: the name of the metric or a pattern for it, and the labels that it requires. */
export interface Selector {
  readonly name: RegExp;
  readonly labels: Readonly<Record<string, string>>;
}

const STRING = String.raw`"(?:[^"\\]|\\.)*"`;
const GROUPING = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g;
const WORDS = new Set(['and', 'or', 'unless', 'bool', 'offset', 'by', 'without', 'on', 'ignoring', 'inf', 'nan']);

/**
 * The selectors of a PromQL expression that promtool has accepted. Only labels that must equal a string are included, without
 * `job` and `instance`, which Prometheus adds, and without those whose value is a variable of the dashboard.
 */
export function selectorsOf(expression: string): readonly Selector[] {
  const found: Selector[] = [];
  const withMatchers = new RegExp(String.raw`([A-Za-z_:][\w:]*)?\{((?:${STRING}|[^{}"])*)\}`, 'g');
  const rest = expression.replace(withMatchers, (_, name: string | undefined, matchers: string) => {
    const labels: Record<string, string> = {};
    let pattern = name;
    for (const [, label = '', operator, value = ''] of matchers.matchAll(
      /(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"/g,
    )) {
      if (label === '__name__') pattern = value;
      else if (operator === '=' && !['job', 'instance'].includes(label) && !value.includes('$')) labels[label] = value;
    }
    if (pattern === undefined) throw new Error(`a selector without a name in ${expression}`);
    found.push({ name: new RegExp(`^(?:${pattern})$`), labels });
    return ' ';
  });
  const bare = rest
    .replaceAll(new RegExp(STRING, 'g'), ' ')
    .replaceAll(/\[[^\]]*\]/g, ' ')
    .replaceAll(GROUPING, ' ');
  for (const [name] of bare.matchAll(/\b[A-Za-z_:][\w:]*\b(?!\s*\()/g)) {
    if (!WORDS.has(name)) found.push({ name: new RegExp(`^${name}$`), labels: {} });
  }
  return found;
}

/** Every label that an expression groups by. */
export function groupingsOf(expression: string): readonly string[] {
  return [...expression.matchAll(/\b(?:by|on|without|ignoring)\s*\(([^)]*)\)/g)].flatMap(([, labels = '']) =>
    labels
      .split(',')
      .map((label) => label.trim())
      .filter((label) => label !== ''),
  );
}
