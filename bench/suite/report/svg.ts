type Attributes = Readonly<Record<string, string | number>>;

/** A number, a text that is escaped, or an element. */
export type Child = string | { readonly svg: string };

/** An element of SVG. */
export function element(name: string, attributes: Attributes, ...children: readonly Child[]): { readonly svg: string } {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escape(shown(value))}"`);
  const content = children.map((child) => (typeof child === 'string' ? escape(child) : child.svg)).join('');
  return { svg: content === '' ? `<${name}${written.join('')}/>` : `<${name}${written.join('')}>${content}</${name}>` };
}

/** Colors for a light and a dark background. A reader's browser chooses. */
const COLORS = {
  surface: ['#ffffff', '#161b22'],
  ink: ['#1f2328', '#e6edf3'],
  muted: ['#59636e', '#9198a1'],
  grid: ['#d1d9e0', '#3d444d'],
  first: ['#2a78d6', '#4a96ea'],
  second: ['#d9622b', '#e8814f'],
  third: ['#1a7f4b', '#3fb27f'],
} as const;

function style(scheme: 0 | 1): string {
  const colors = Object.entries(COLORS).map(([name, pair]) => {
    const color = pair[scheme];
    return name === 'ink' ? `text{fill:${color}}` : `.${name}{fill:${color}}.${name}-line{stroke:${color};fill:none}`;
  });
  // A text is in the color of its class.
  return `${colors.join('')}text.muted{fill:${COLORS.muted[scheme]}}`;
}

const FONT =
  'text{font:12px system-ui,sans-serif}.title{font-size:15px;font-weight:600}.end{text-anchor:end}.middle{text-anchor:middle}';

export interface DocumentOptions {
  readonly width: number;
  readonly height: number;
  /** Also what a screen reader reads. */
  readonly title: string;
  /** What is shown, with its unit. */
  readonly subtitle: string;
}

/** A complete document, with its title at the top. */
export function svgDocument(
  { width, height, title, subtitle }: DocumentOptions,
  ...children: readonly Child[]
): string {
  const css = `${FONT}${style(0)}@media(prefers-color-scheme:dark){${style(1)}}`;
  return `${
    element(
      'svg',
      { xmlns: 'http://www.w3.org/2000/svg', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img' },
      element('title', {}, `${title}: ${subtitle}`),
      element('style', {}, css),
      element('rect', { class: 'surface', width, height, rx: 6 }),
      element('text', { class: 'title', x: 16, y: 26 }, title),
      element('text', { class: 'muted', x: 16, y: 44 }, subtitle),
      ...children,
    ).svg
  }\n`;
}

export function text(x: number, y: number, content: string, classes = ''): Child {
  return element('text', { x, y, ...(classes !== '' && { class: classes }) }, content);
}

export function line(from: readonly [number, number], to: readonly [number, number], classes = 'grid-line'): Child {
  return element('line', { class: classes, x1: from[0], y1: from[1], x2: to[0], y2: to[1] });
}

function shown(value: string | number): string {
  return typeof value === 'number' ? String(Math.round(value * 10) / 10) : value;
}

function escape(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
