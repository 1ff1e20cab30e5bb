/** A picture in SVG, with a title for those who do not see it. Sizes are pixels. */
export function svg(
  { width, height, title }: { readonly width: number; readonly height: number; readonly title: string },
  elements: readonly string[],
): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">`,
    `<title>${title}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    ...elements,
    '</svg>\n',
  ].join('\n');
}

export function svgText(x: number, y: number, content: string, weight = 'normal'): string {
  return `<text x="${tenths(x)}" y="${tenths(y)}" fill="#333333" font-weight="${weight}">${content}</text>`;
}

/** A coordinate, short enough to be read. */
export function tenths(value: number): number {
  return Math.round(value * 10) / 10;
}
