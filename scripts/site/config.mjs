// The configuration of VitePress: build.mjs puts it next to the pages.
import { readFileSync } from 'node:fs';

const sidebar = JSON.parse(readFileSync(new URL('sidebar.json', import.meta.url), 'utf8'));

/** The anchors of headings, as links in the pages have them: those of GitHub. */
function slugify(text) {
  return text
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
    .replaceAll(' ', '-');
}

/** Two braces are text, also in code: nothing of a page is a template. */
function withoutTemplates({ renderer }) {
  for (const kind of ['text', 'code_inline']) {
    const render = renderer.rules[kind];
    renderer.rules[kind] = (...args) => render(...args).replaceAll('{{', '&#123;&#123;');
  }
}

export default {
  title: 'weir',
  description: 'Rate limit decisions for proxies and applications',
  lang: 'en',
  // The script that makes the pages has checked the files; the others are those of a running service.
  ignoreDeadLinks: [/^\/files\//, /^http:\/\/localhost/],
  // What is in angle brackets is a name to be replaced, and no markup.
  markdown: { html: false, anchor: { slugify }, config: withoutTemplates },
  themeConfig: {
    sidebar,
    outline: [2, 3],
    search: { provider: 'local' },
  },
};
