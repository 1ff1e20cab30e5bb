import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  type MarkdownLink,
  ROOT,
  anchorsOf,
  markdownFiles,
  mentionedPaths,
  readMarkdown,
  relativeLinks,
} from './markdown-files';
import { parse } from 'yaml';
import { type Setting, fileNamesOf, namesOf } from '../../src/settings/table/setting';
import { settingsTable } from '../../src/settings/table/settings-table';
import { faultsSection, picture, readFaults } from '../../bench/faults/report';
import { nameOf, readSoaks, soakSection, verdictsOf } from '../../bench/soak/report';
import { headline, replaceSections, sectionsOf, sizing } from '../../bench/suite/report/pages';
import { readResults } from '../../bench/suite/results';
import { SCENARIOS } from '../../bench/suite/scenarios/scenarios';

const FILES = markdownFiles();

function written({ from, target }: MarkdownLink): string {
  return `${from}: ${target}`;
}

function isBroken({ path, anchor }: MarkdownLink): boolean {
  const file = join(ROOT, path);
  if (!existsSync(file)) return true;
  return anchor !== undefined && (statSync(file).isDirectory() || !anchorsOf(path).has(anchor));
}

describe('the Markdown files', () => {
  it('include the README and the documentation', () => {
    expect(FILES).toEqual(expect.arrayContaining(['README.md', 'docs/operations.md', 'test/README.md']));
  });

  it('have relative links that lead to files and headings', () => {
    const links = FILES.flatMap(relativeLinks);

    expect(links.length).toBeGreaterThan(20);
    expect(links.filter(isBroken).map(written)).toEqual([]);
  });

  it('have pictures that exist, and none is without a page', () => {
    const shown = FILES.flatMap((file) =>
      Array.from(readMarkdown(file).matchAll(/!\[[^\]]+\]\(([^)]+)\)/g), ([, path]) => join(dirname(file), path!)),
    );

    expect(shown.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    expect(readdirSync(join(ROOT, 'docs/images')).filter((name) => !shown.includes(`docs/images/${name}`))).toEqual([]);
    expect(shown.length).toBeGreaterThan(3);
  });

  it('of security have attacks that are titles of tests', () => {
    const rows = Array.from(readMarkdown('docs/security.md').matchAll(/^\| (.+?) \|.*\| `(test\/.+)` \|$/gm));

    expect(rows.length).toBeGreaterThan(0);
    for (const [, attack, file] of rows) expect(readFileSync(join(ROOT, file!), 'utf8')).toContain(attack);
  });

  it('in docs/ are all in its index', () => {
    const indexed = new Set(relativeLinks('docs/README.md').map(({ path }) => path));

    expect(FILES.filter((file) => /^docs\/(?!README)/.test(file) && !indexed.has(file))).toEqual([]);
  });

  it('name only files and folders that exist', () => {
    const missing = FILES.flatMap((file) =>
      mentionedPaths(file)
        .filter((path) => !existsSync(join(ROOT, path)))
        .map((path) => `${file}: ${path}`),
    );

    expect(missing).toEqual([]);
  });
});

/** The lines in the table of docs/runbook.md, each cut at its varying parts. */
function documentedLines(): readonly (readonly string[])[] {
  const [, section = ''] = readMarkdown('docs/runbook.md').split('\n## Log lines that need action\n');
  const cells = Array.from(
    section.matchAll(/^\| (?:fatal: |error: )?(?<lines>`.*?) \| /gm),
    ({ groups }) => groups!.lines!,
  );
  return cells.flatMap((cell) =>
    Array.from(cell.matchAll(/`([^`]+)`/g), ([, line]) => line!.split('…').filter((part) => part.length > 1)),
  );
}

function sources(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => readFileSync(join(ROOT, folder, path), 'utf8'));
}

test('every log line in docs/runbook.md is written by the code', () => {
  const lines = documentedLines();
  const texts = sources('src');
  const unknown = lines.filter((parts) => !texts.some((text) => parts.every((part) => text.includes(part))));

  expect(lines.length).toBeGreaterThan(15);
  expect(unknown).toEqual([]);
});

test('every line about the life of the service and at level debug in docs/operations-reference.md is written by the code', () => {
  const [, logs = ''] = /^\*\*Logs\*\*(.*)/ms.exec(readMarkdown('docs/operations-reference.md')) ?? [];
  const lines = Array.from(logs.matchAll(/^\| `([^`]+)` \| /gm), ([, line]) => line!.replace(/…$/, ''));
  const texts = sources('src');

  expect(lines.length).toBeGreaterThan(9);
  expect(lines.filter((line) => !texts.some((text) => text.includes(line)))).toEqual([]);
});

interface Alert {
  readonly alert: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}

interface Alerts {
  readonly groups: readonly { readonly rules: readonly Alert[] }[];
}

const ALERTS = join(ROOT, 'examples/observability/weir-alerts.yaml');
const alerts = (parse(readFileSync(ALERTS, 'utf8')) as Alerts).groups.flatMap(({ rules }) => rules);

test('every alert names its section of the runbook', () => {
  const anchors = anchorsOf('docs/runbook.md');

  expect(alerts.length).toBeGreaterThan(11);
  for (const { alert, annotations } of alerts) {
    expect([alert, annotations['runbook']]).toEqual([alert, `docs/runbook.md#${alert.toLowerCase()}`]);
    expect([alert, anchors.has(alert.toLowerCase())]).toEqual([alert, true]);
  }
});

test('every section about an alert in the runbook is about one that exists, in order, listed under its severity', () => {
  const page = readMarkdown('docs/runbook.md');
  const sections = Array.from(page.matchAll(/^## (Weir\w+)$/gm), ([, name]) => name);
  const items = Array.from(page.matchAll(/^- \*\*(critical|warning|info)\*\*: (.*(?:\n  .*)*)/gm));
  const listed = items.flatMap(([, severity, text = '']) =>
    Array.from(text.matchAll(/\[(Weir\w+)\]/g), ([, name]) => `${severity}: ${name}`),
  );

  expect(sections).toEqual(alerts.map(({ alert }) => alert));
  expect(listed.toSorted()).toEqual(alerts.map(({ alert, labels }) => `${labels.severity}: ${alert}`).toSorted());
});

test('every page that the health of the service links to is served with the console, and has the section', () => {
  const [, list = ''] =
    /const pages = \[(.*)\]/.exec(readFileSync(join(ROOT, 'src/http/debug/console.ts'), 'utf8')) ?? [];
  const served = Array.from(list.matchAll(/'([\w-]+)'/g), ([, name]) => `docs/${name}.md`);
  const links = sources('src/operators').flatMap((text) => [...text.matchAll(/'(?:docs\/)?([\w-]+\.md)#([\w-]+)'/g)]);

  expect([served.length, links.length > 9]).toEqual([4, true]);
  for (const [link, page, anchor] of links) {
    const path = `docs/${page}`;
    expect([link, served.includes(path), anchorsOf(path).has(anchor!)]).toEqual([link, true, true]);
  }
});

/**
 * Names in capitals that are no settings of weir: variables that Node, libraries and systemd use, codes, and values.
 */
const OTHERS = new RegExp(
  '^(?:NODE_|SSL_CERT_|OTEL_|LISTEN_|(?:NOTIFY_SOCKET|NO_COLOR|GRPC_SSL_CIPHER_SUITES|GRPC_SERVER_TLS_CA_CERT' +
    '|WATCHDOG_USEC|OVER_LIMIT|GRPC_XDS_SOTW|RESOURCE_EXHAUSTED|INVALID_ARGUMENT|HTTP_FILTER|HTTP_ROUTE)$)',
);
const SPAN = /`(?<name>[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=[^`]*)?`/g;

/** The names in capitals that a page has as code, such as `GRPC_PORT` and `GRPC_PORT=0`. */
function namesIn(page: string): readonly string[] {
  return Array.from(readMarkdown(page).matchAll(SPAN), ({ groups }) => groups!['name']!);
}

test('every setting that the documentation names exists', () => {
  const settings = settingsTable.flatMap((group): readonly Setting[] => group.settings);
  const names = new Set(settings.flatMap((setting) => [...namesOf(setting), ...fileNamesOf(setting)]));
  const pages = markdownFiles().filter((file) => /^(?:README\.md$|SECURITY\.md$|docs\/|examples\/)/.test(file));
  const named = pages.flatMap((page) => namesIn(page).map((name) => ({ page, name })));

  expect(named.length).toBeGreaterThan(200);
  expect(named.filter(({ name }) => !names.has(name) && !OTHERS.test(name))).toEqual([]);
});

const RESULTS = join(ROOT, 'bench/results');
const results = readResults(RESULTS);
const { memory, ...measured } = sectionsOf(results);
const soaks = readSoaks(join(RESULTS, 'soak.json'));
const faults = readFaults(join(RESULTS, 'faults.json'));

describe('the published results', () => {
  it('have every scenario at three paces, with the default settings', () => {
    expect(results.decisions.map(({ store, load }) => `${store}/${load}`)).toEqual(SCENARIOS.map(({ name }) => name));
    for (const { paced } of results.decisions) expect(paced.map(({ share }) => share)).toEqual([0.25, 0.5, 0.75]);
    expect(results.memory.map(({ keys }) => keys)).toEqual([1_000_000, 1_000_000, 1_000_000]);
    expect(results.settings).toEqual({});
  });

  it('of soaks are those of each store and of several workers, took ten minutes, and show what they have to', () => {
    expect(soaks.map(({ setup }) => nameOf(setup))).toEqual([
      'Redis',
      'memory',
      'Redis, 2 workers',
      'memory, 2 workers',
    ]);
    for (const soak of soaks) {
      expect(soak.seconds).toBeGreaterThanOrEqual(600);
      expect(verdictsOf(soak).filter(([, holds]) => !holds)).toEqual([]);
    }
  });

  it.each([
    ['bench/suite/README.md', measured],
    ['docs/sizing.md', { sizing: sizing(results), memory }],
    ['bench/soak/README.md', { soak: soakSection(soaks) }],
    ['bench/faults/README.md', { faults: faultsSection(faults) }],
    ['README.md', { headline: headline(results) }],
  ])('are those of the tables in %s', (name, sections) => {
    const page = readMarkdown(name);

    expect(page).toBe(replaceSections(page, sections));
  });

  it('of faults of the store are of every store and policy, lasted ten seconds, and are those of the picture', () => {
    const named = faults.results.map(({ store, fault, policy }) => `${store}/${fault}/${policy}`);
    const all = ['killed', 'stopped', 'slow'].flatMap((fault) => [
      ...['single', 'sentinel', 'cluster', 'memcached'].map((store) => `${store}/${fault}/local`),
      ...['allow', 'deny', 'error'].map((policy) => `single/${fault}/${policy}`),
    ]);
    expect(named).toEqual(expect.arrayContaining(all));
    expect(faults.seconds[1]).toBe(10);
    expect(faults.results.filter(({ appliedTwice }) => appliedTwice > 0)).toEqual([]);
    expect(readFileSync(join(ROOT, 'docs/images/store-faults.svg'), 'utf8')).toBe(picture(faults));
  });
});
