import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Context } from 'koa';
import { GET, type Route } from '../listener';

/** What the build makes of the folder console/. The compiled file and this one are equally deep. */
const FOLDER = join(__dirname, '../../../dist/console');

const HEADERS = {
  // Trusted Types: the browser itself keeps texts from becoming HTML.
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-cache',
};

const compress = promisify(gzip);

/** `/console/`: pages for browsers that show what the operators' API answers. All their links are relative. */
export function consoleRoutes(): readonly Route[] {
  // What the health of the service links to.
  const pages = ['operations-reference', 'operations', 'operators-api', 'runbook'].map((name) => `docs/${name}.md`);
  const files = ['index.html', 'main.js', 'app.css', 'icon.svg', ...pages];
  return [
    {
      ...fileRoute('/console/', 'index.html'),
      description: 'the console: live numbers, rules, explanations, counters',
    },
    ...files.map((name) => fileRoute(`/console/${name}`, name)),
    // Relative, so that it is right below the path of a proxy.
    { path: '/console', allow: GET, handle: (ctx) => ctx.redirect('console/') },
  ];
}

function fileRoute(path: string, name: string): Route {
  let compressed: Promise<Buffer> | undefined;
  return {
    path,
    allow: GET,
    handle: async (ctx: Context) => {
      ctx.set(HEADERS);
      ctx.type = name.slice(name.lastIndexOf('.'));
      ctx.vary('Accept-Encoding');
      if (ctx.acceptsEncodings('gzip', 'identity') !== 'gzip') {
        ctx.body = await readFile(join(FOLDER, name));
        return;
      }
      compressed ??= readFile(join(FOLDER, name)).then((text) => compress(text, { level: 9 }));
      ctx.body = await compressed;
      ctx.set('Content-Encoding', 'gzip');
    },
  };
}
