import type { Middleware } from 'koa';
import type { IndexLine } from './endpoint';

/** Lists endpoints and their variants: as HTML with links for clients that prefer it, else as text. */
export function indexPage(
  title: string,
  endpoints: readonly (IndexLine & { readonly variants?: readonly IndexLine[] })[],
): Middleware {
  const lines = endpoints.flatMap((endpoint) => [endpoint, ...(endpoint.variants ?? [])]);
  return (ctx) => {
    ctx.vary('Accept');
    if (ctx.accepts('text/plain', 'text/html') === 'text/html') {
      ctx.type = 'text/html';
      ctx.body = asHtml(title, lines);
    } else {
      ctx.type = 'text/plain';
      ctx.body = asText(title, lines);
    }
  };
}

function asText(title: string, lines: readonly IndexLine[]): string {
  const width = Math.max(...lines.map(({ path }) => path.length));
  return [title, '', ...lines.map(({ path, description }) => `${path.padEnd(width)}  ${description}`), ''].join('\n');
}

function asHtml(title: string, lines: readonly IndexLine[]): string {
  const rows = lines.map(({ path, description }) => `<dt><a href="${path}">${path}</a></dt><dd>${description}</dd>`);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>
  body { font: 1rem/1.5 system-ui, sans-serif; max-width: 48rem; margin: 3rem auto; padding: 0 1rem }
  dt { font-family: ui-monospace, monospace; margin-top: 1rem }
  dd { margin: 0 }
</style>
<h1>${title}</h1>
<dl>
${rows.join('\n')}
</dl>
</html>
`;
}
