import type { Problem } from '../../rules/files/problems/problem';
import { visible, visibleLine } from '../../text/visible';
import { VERSION } from '../../version';

/** How weir-check prints what it has found. */
export const FORMATS = ['text', 'json', 'github', 'sarif', 'junit', 'markdown'] as const;
export type Format = (typeof FORMATS)[number];

/** What is wrong at a place of a file: a problem of rules, or a test that fails. */
export interface Finding extends Pick<Problem, 'file' | 'line' | 'column' | 'severity' | 'message'> {
  /** What kind of finding it is, for tools that group them. */
  readonly code: string;
}

/** Something that was checked: a rule file, or a test. */
export interface CheckedCase {
  readonly file: string;
  readonly name: string;
  readonly findings: readonly Finding[];
}

function findingOf({ file, line, column, severity, code, message, advice }: Problem): Finding {
  return { file, line, column, severity, code, message: `${message}. ${advice}` };
}

/** Rule files as cases. @param paths those without a finding, too */
export function casesOfRules(problems: readonly Problem[], paths: readonly string[] = []): readonly CheckedCase[] {
  const byFile = grouped(problems, ({ file }) => file);
  return [...new Set([...paths, ...byFile.keys()])].map((file) => {
    return { file, name: 'the rules load', findings: (byFile.get(file) ?? []).map(findingOf) };
  });
}

/** The items by their keys, in order. */
export function grouped<Item>(items: Iterable<Item>, keyOf: (item: Item) => string): ReadonlyMap<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

/** Prints what was found for another program. */
export function formatCases(format: Format, found: readonly CheckedCase[]): string {
  const cases = found.map(({ file, name, findings }) => {
    const shown = findings.map((each) => ({ ...each, message: visibleLine(each.message) }));
    return { file, name: visibleLine(name), findings: shown };
  });
  if (format === 'junit') return junit(cases);
  const findings = cases.flatMap((each) => each.findings);
  return format === 'github' ? findings.map(annotation).join('\n') : JSON.stringify(sarif(findings), null, 2);
}

/** A workflow command of GitHub Actions, which annotates the line in a pull request. */
function annotation({ file, line, column, severity, code, message }: Finding): string {
  const place = line === 0 ? '' : `,line=${line}${column === 0 ? '' : `,col=${column}`}`;
  return `::${severity} file=${property(file)}${place},title=${property(code)}::${escaped(message)}`;
}

function escaped(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function property(text: string): string {
  return escaped(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}

/** SARIF 2.1.0: docs.oasis-open.org/sarif/sarif/v2.1.0. */
function sarif(findings: readonly Finding[]): unknown {
  const rules = [...new Set(findings.map(({ code }) => code))].map((id) => ({ id }));
  const results = findings.map(({ file, line, column, severity, code, message }) => {
    const region = line === 0 ? {} : { region: { startLine: line, ...(column > 0 && { startColumn: column }) } };
    const artifactLocation = { uri: uriOf(file) };
    return {
      ruleId: code,
      level: severity,
      message: { text: message },
      locations: [{ physicalLocation: { artifactLocation, ...region } }],
    };
  });
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      { tool: { driver: { name: 'weir-check', version: VERSION, rules } }, columnKind: 'unicodeCodePoints', results },
    ],
  };
}

/** A relative reference to a file: unlike in a URI, `?` and `#` are parts of its name. */
function uriOf(file: string): string {
  return encodeURI(visible(file.replaceAll('\\', '/'))).replaceAll(/[?#]/g, encodeURIComponent);
}

/** The XML that continuous integration reads as the report of a test run. Warnings are no failures. */
function junit(cases: readonly CheckedCase[]): string {
  const lines = [...grouped(cases, ({ file }) => file)].flatMap(([file, of]) => {
    const failed = of.filter(({ findings }) => findings.some(({ severity }) => severity === 'error')).length;
    return [
      `  <testsuite name="${xml(visibleLine(file))}" tests="${of.length}" failures="${failed}">`,
      ...of.flatMap(testcase),
      '  </testsuite>',
    ];
  });
  return ['<?xml version="1.0" encoding="UTF-8"?>', '<testsuites name="weir-check">', ...lines, '</testsuites>'].join(
    '\n',
  );
}

function testcase({ file, name, findings }: CheckedCase): readonly string[] {
  const errors = findings.filter(({ severity }) => severity === 'error');
  const others = findings.filter(({ severity }) => severity !== 'error');
  const head = `    <testcase classname="${xml(visibleLine(file))}" name="${xml(name)}"`;
  if (findings.length === 0) return [`${head}/>`];
  return [
    `${head}>`,
    ...errors.map(
      ({ line, message }) => `      <failure message="${xml(message)}">${xml(`line ${line}: ${message}`)}</failure>`,
    ),
    ...(others.length === 0
      ? []
      : [
          `      <system-out>${xml(others.map(({ line, message }) => `line ${line}: ${message}`).join('\n'))}</system-out>`,
        ]),
    '    </testcase>',
  ];
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function xml(text: string): string {
  // Control characters are not allowed in XML 1.0, however they are written.
  return text
    .replaceAll(/[&<>"]/g, (each) => ENTITIES[each]!)
    .replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd');
}
