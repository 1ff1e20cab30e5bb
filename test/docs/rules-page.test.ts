import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROBLEMS } from '../../src/rules/files/problems/problem';
import { algorithmsPicture } from './algorithms-picture';
import { leasesPicture } from './leases-picture';
import { type CodeBlock, codeBlocksOf } from './code-blocks';
import { ROOT, readMarkdown, relativeLinks } from './markdown-files';
import { playDecisions, rulesetOf } from './play-decisions';

const PAGE = 'docs/rules.md';
const BLOCKS = codeBlocksOf(PAGE).filter(({ language }) => language === 'yaml' || language === 'decisions');

/** Each block of decisions with the rule file above it. */
function examples(): readonly (readonly [place: string, rules: CodeBlock, decisions: CodeBlock])[] {
  return BLOCKS.flatMap((block, index) => {
    const rules = BLOCKS.slice(0, index).findLast(({ language }) => language === 'yaml');
    return block.language === 'decisions' && rules !== undefined ? [[block.place, rules, block] as const] : [];
  });
}

describe('the examples of docs/rules.md', () => {
  it('are rule files, each with decisions below it', () => {
    expect(examples().length).toBeGreaterThan(15);
    const rules = BLOCKS.filter(({ language }) => language === 'yaml');
    expect([...new Set(examples().map(([, file]) => file))]).toEqual(rules);
  });

  it.each(examples())('%s answers as it says', async (_place, rules, decisions) => {
    const { expectations, differences } = await playDecisions(rules.text, decisions.text);
    expect(differences).toEqual([]);
    expect(expectations).toBeGreaterThan(0);
  });
});

it.each([
  ['algorithms', algorithmsPicture],
  ['leases', leasesPicture],
])('the picture of the %s is what `npm run pictures` writes', (name, picture) => {
  // Their difference is nothing to read.
  expect(readFileSync(join(ROOT, `docs/images/${name}.svg`), 'utf8') === picture()).toBe(true);
});

it.each(['README.md', 'docs/getting-started.md'])('the rule files in %s are valid', (page) => {
  const files = codeBlocksOf(page).flatMap(({ text }) => /^domain: .*?(?=^END$|$(?![^]))/ms.exec(text)?.[0] ?? []);
  expect(files).toHaveLength(1);
  for (const file of files) expect(() => rulesetOf(file)).not.toThrow();
});

describe('the fields in docs/rules.md', () => {
  interface Properties {
    readonly properties: Readonly<Record<string, unknown>>;
  }
  const schema = JSON.parse(readFileSync(join(ROOT, 'schema/rule-file.schema.json'), 'utf8')) as Properties & {
    readonly definitions: Readonly<Record<'descriptor' | 'rateLimit', Properties>>;
  };

  function fieldsOf(heading: string): readonly string[] {
    const [, section = ''] = new RegExp(`^### ${heading}\\n(.*?)^##`, 'ms').exec(readMarkdown(PAGE)) ?? [];
    return Array.from(section.matchAll(/^\| `(\w+)` \|/gm), ([, field]) => field!);
  }

  it.each([
    ['The file', schema.properties],
    ['A rule', schema.definitions.descriptor.properties],
    ['`rate_limit`', schema.definitions.rateLimit.properties],
  ])('of "%s" are those of the schema', (heading, properties) => {
    expect([...fieldsOf(heading)].toSorted()).toEqual(Object.keys(properties).toSorted());
  });

  it('link to every error that a field can have', () => {
    const linked = new Set(
      relativeLinks(PAGE).flatMap(({ path, anchor }) =>
        path === 'docs/rule-errors.md' && anchor !== undefined ? [anchor] : [],
      ),
    );
    const codes = Object.keys(PROBLEMS);
    const ofFields = codes.slice(codes.indexOf('empty-domain'), codes.indexOf('second-document'));
    expect(ofFields.filter((code) => !linked.has(code))).toEqual([]);
  });
});
