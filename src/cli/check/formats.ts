import { RULE_ERRORS } from '../../gen/rule-errors';
import type { Problem } from '../../rules/files/problems/problem';
import { grouped } from '../../text/grouped';
import { visible, visibleLine, visibleLines } from '../../text/visible';
import { VERSION } from '../../version';

/** How weir-check prints what it has found. */
export const FORMATS = ['text', 'json', 'github', 'sarif', 'junit', 'markdown'] as const;
export type Format = (typeof FORMATS)[number];

/** What is wrong at a place of a file: a problem of rules, or a test that fails. */
export interface Finding extends Pick<Problem, 'file' | 'line' | 'column' | 'severity' | 'message'> {
  /** What kind of finding it is, for tools that group them. */
  readonly code: string;
  /** Further lines that explain it, for reports with room for them. */
  readonly details?: readonly string[];
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

/** The pages of this version, as a content network serves them from the npm package. */
const PAGES = `https://unpkg.com/weir-ratelimit@${VERSION}/docs/`;

/** What failed tests have instead of a section in docs/rule-errors.md. */
const FAILED_TEST = 'A test of the rules gives another answer than the one that it expects.';

/** SARIF 2.1.0: docs.oasis-open.org/sarif/sarif/v2.1.0, with what GitHub's code scanning requires of each rule. */
function sarif(findings: readonly Finding[]): unknown {
  const rules = [...new Set(findings.map(({ code }) => code))].map(sarifRule);
  const results = findings.map(({ file, line, column, severity, code, message }) => {
    // GitHub asks for a line, also where the whole file is meant.
    const region = { startLine: Math.max(line, 1), ...(column > 0 && { startColumn: column }) };
    const artifactLocation = { uri: uriOf(file) };
    return {
      ruleId: code,
      ruleIndex: rules.findIndex(({ id }) => id === code),
      level: severity,
      message: { text: message },
      locations: [{ physicalLocation: { artifactLocation, region } }],
    };
  });
  const driver = { name: 'weir-check', version: VERSION, informationUri: `${PAGES}rule-errors.md`, rules };
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [{ tool: { driver }, columnKind: 'unicodeCodePoints', results }],
  };
}

/** A kind of finding, in the words of its section of docs/rule-errors.md. */
function sarifRule(id: string) {
  const markdown = RULE_ERRORS[id] ?? FAILED_TEST;
  const text = markdown
    .replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1')
    .replaceAll(/`+/g, '')
    .replaceAll('\n', ' ');
  const words = id.replaceAll('-', ' ');
  return {
    id,
    name: words.replaceAll(/(?:^| )(\w)/g, (_, letter: string) => letter.toUpperCase()),
    shortDescription: { text: `${words[0]!.toUpperCase()}${words.slice(1)}.` },
    fullDescription: { text },
    help: { text, markdown: markdown.replaceAll(/\]\((?!https?:)/g, `](${PAGES}`) },
    helpUri: id in RULE_ERRORS ? `${PAGES}rule-errors.md#${id}` : `${PAGES}testing-rules.md`,
  };
}

/** A relative reference to a file: unlike in a URI, `?` and `#` are parts of its name. */
function uriOf(file: string): string {
  return encodeURI(visible(file.replaceAll('\\', '/'))).replaceAll(/[?#]/g, encodeURIComponent);
}

/**
 * The XML that continuous integration reads as the report of a test run, valid by the schemas of Jenkins and of Ant
 * (github.com/windyroad/JUnit-Schema). Warnings are no failures.
 */
function junit(cases: readonly CheckedCase[]): string {
  const timestamp = new Date().toISOString().slice(0, 19);
  const suites = [...grouped(cases, ({ file }) => file)].map(([file, of], id) => {
    const failed = of.filter(({ findings }) => findings.some(({ severity }) => severity === 'error')).length;
    const warnings = of.flatMap(({ findings }) => findings.filter(({ severity }) => severity !== 'error'));
    const name = xml(visibleLine(file));
    const counts = `tests="${of.length}" failures="${failed}" errors="0" time="0"`;
    const made = `timestamp="${timestamp}" hostname="localhost"`;
    return `  <testsuite id="${id}" package="weir-check" name="${name}" ${made} ${counts}>
    <properties><property name="version" value="${VERSION}"/></properties>
${of.map(testcase).join('\n')}
    <system-out>${textOf(warnings)}</system-out>
    <system-err></system-err>
  </testsuite>`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.join('\n')}\n</testsuites>`;
}

/** A case has one failure at most, by the schema of Ant: the first error is its message, and its text has all. */
function testcase({ file, name, findings }: CheckedCase): string {
  const head = `    <testcase classname="${xml(visibleLine(file))}" name="${xml(name)}" time="0"`;
  const errors = findings.filter(({ severity }) => severity === 'error');
  const [first] = errors;
  if (first === undefined) return `${head}/>`;
  const failure = `<failure type="${xml(first.code)}" message="${xml(first.message)}">${textOf(errors)}</failure>`;
  return `${head}>\n      ${failure}\n    </testcase>`;
}

/** A line for each finding, with the lines that explain it below. */
function textOf(findings: readonly Finding[]): string {
  const lines = findings.flatMap(({ line, message, details = [] }) => [`line ${line}: ${message}`, ...details]);
  return xml(visibleLines(lines));
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function xml(text: string): string {
  // Control characters are not allowed in XML 1.0, however they are written.
  return text
    .replaceAll(/[&<>"]/g, (each) => ENTITIES[each]!)
    .replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd');
}
