import { ALGORITHMS } from '../../rule-config';
import { visible, visibleLine, visibleLines } from '../../../text/visible';
/**
 * Every problem that a rule file can have, by code. An error prevents the files from loading; a warning is about
 * something that loads, but has less effect than it seems to have. Each has the advice that is given unless a report of
 * it has its own. `docs/rule-errors.md` explains each code.
 */
export const PROBLEMS = {
  // The folder.
  'unreadable-folder': error('Give a rule folder or a rule file that exists and is readable.'),
  'unreadable-file': error('Correct its permissions or the target of its link, or delete it.'),
  'folder-too-large': error('Keep only rule files there; write fewer rules, with wildcards or without values.'),
  'no-rule-files': warning('Rule files are named *.yaml or *.yml.'),
  'ignored-files': warning('Rule files are named *.yaml or *.yml; move other files elsewhere.'),
  'linked-folders': warning('Link the files themselves.'),
  // The file as a whole.
  'file-too-large': error(
    'Split it into several files; with MERGE_DOMAIN_CONFIG=true several files can describe one domain.',
  ),
  'invalid-utf8': error('Save the file as UTF-8.'),
  'control-character': error('Remove it; inside double quotes it can be written as an escape such as "\\x07".'),
  'merge-conflict': error(
    'Keep what is right of both sides, and remove the lines that begin with <<<<<<<, ||||||| (if ' +
      'any), ======= and >>>>>>>.',
  ),
  // YAML.
  'yaml-syntax': error('Correct the YAML here; the mistake may be a few lines above.'),
  'tab-indentation': error('Indent with spaces.'),
  'yaml-version': error('Remove the %YAML line: rule files are YAML 1.1.'),
  'unsupported-tag': error('Write the text itself, in double quotes.'),
  'unknown-anchor': error(),
  'anchor-contains-itself': error('Write the intended content here instead of the alias.'),
  'too-many-aliases': error('Define fewer rules by alias; one rule with a wildcard may replace them.'),
  'nested-too-deeply': error('Nest fewer levels: each level is one entry of a request descriptor.'),
  'invalid-merge': error('Give `<<` an alias of a mapping (`<<: *name`) or a list of such aliases.'),
  // Shape.
  'kubernetes-object': error(),
  'unrendered-template': error('Render it first, for example with `helm template`, and check the result.'),
  'not-a-mapping': error('Start the file with `domain: <name>` and `descriptors:`.'),
  'key-not-text': error(),
  'unknown-key': error(),
  'list-item-not-a-mapping': error(),
  'wrong-type': error(),
  // Meaning.
  'empty-domain': error(),
  'duplicate-domain': error(),
  'duplicate-default': error(),
  'invalid-unmatched-policy': error('The policies are allow and deny.'),
  'empty-key': error('Write `key: <key of a request entry>`.'),
  'duplicate-descriptor': error(),
  'several-values': error('A rule has one of value, value_in, value_cidr and value_regex.'),
  'invalid-value-in': error('Write a list of values that are not empty: [gold, silver].'),
  'invalid-value-cidr': error(),
  'invalid-value-regex': error('The syntax is that of RE2; it has no look-ahead and no back-references.'),
  'regex-too-large': error('Write a shorter one, or list values in `value_in`.'),
  'too-many-regexes': error('Join some of them with `|`, or list values in `value_in`.'),
  'rate-limit-and-limits': error('Write all limits of the rule in `rate_limits`.'),
  'all-or-nothing-without-limits': error('Write the limit as an item of `rate_limits`, or remove `all_or_nothing`.'),
  'too-many-limits': error('Each limit is counted by each call; remove some.'),
  'unlimited-among-limits': error('Write `unlimited` in a `rate_limit`, or remove it.'),
  'same-window': error(
    'Keep the lower one of the two, or give both `active` hours in one time zone that have no minute in common.',
  ),
  'invalid-unit': error(),
  'unit-when-unlimited': error('Remove `unit` or `unlimited`.'),
  'invalid-unit-multiplier': error(),
  'window-too-long': error(),
  'invalid-calendar-unit': error('A window of the calendar is a day, week, month or year.'),
  'calendar-combined': error('Remove one of the two.'),
  'invalid-time-zone': error(),
  'no-time-zones': error('Run weir with an official build of Node.js.'),
  'invalid-starts-on': error(),
  'invalid-active': error(),
  'active-with-replaces': error('Remove one of the two: a rule replaces others at any time.'),
  'invalid-block-for': error(),
  'block-too-short': error(),
  'block-without-limit': error('Remove `block_for`.'),
  'block-combined': error('Remove one of the two.'),
  'missing-requests-per-unit': error(),
  'invalid-requests-per-unit': error(),
  'invalid-max-concurrent': error(),
  'max-concurrent-combined': error('Remove one of the two.'),
  'invalid-algorithm': error(`The algorithms are ${ALGORITHMS.join(', ')}.`),
  'invalid-burst': error(),
  'burst-without-token-bucket': error('Write `algorithm: token_bucket`, or remove `burst`.'),
  'burst-too-long': error(),
  'local-policy-with-algorithm': error(
    'Write another policy, or remove the algorithm, `all_or_nothing`, `block_for` or `max_concurrent`.',
  ),
  'lease-with-all-or-nothing': error('Remove one of the two.'),
  'lease-with-postpaid': error('Remove `lease`, or `postpaid`.'),
  'mixed-postpaid': error('Write `postpaid` in all limits of the rule, or in none.'),
  'invalid-failure-policy': error('The policies are error, allow, deny and local.'),
  'invalid-enforce-percent': error(),
  'empty-replaces': error('Write `- name: <name of the rule to replace>`.'),
  'replaces-itself': error('Name another rule here, or give this rule another name.'),
  'share-threshold-without-wildcard': error(
    'Write a `value` with a `*`, or `value_in`, `value_cidr` or `value_regex`; or remove share_threshold.',
  ),
  'invalid-address-prefix': error('Write `ipv4` from 1 to 32, `ipv6` from 1 to 128, or both.'),
  'address-prefix-without-effect': error('Remove one of the two.'),
  'address-prefix-too-short': error(),
  'invalid-metadata': error(),
  // What loads, but has less effect than it seems to have.
  'second-document': warning('Give each domain its own file: only the text before this `---` or `...` is read.'),
  'ignored-tag': warning('Remove it, or quote the value if it starts with "!".'),
  'repeated-key': warning('Keep one of the two; the last one is used.'),
  'merge-overrides-key': warning('Put `<<` first in its mapping: only keys after it override the merged ones.'),
  'merged-rate-limit': warning(),
  'ignored-enforce-percent': warning('Remove it, or `shadow_mode`.'),
  'ignored-all-or-nothing': warning('Remove it: reports count on all limits, and asks on none.'),
  'misplaced-key': warning(),
  'empty-field': warning('Give it a value, or remove it.'),
  'octal-number': warning(),
  'no-descriptors': warning('Write rules under `descriptors`, or delete the domain.'),
  'surrounding-blanks': warning('Remove the white space.'),
  'wildcard-in-key': warning('Write the key in full.'),
  'wildcard-in-list': warning('Give the wildcard a rule of its own, as its `value`.'),
  'ignored-when-unlimited': warning(),
  'ignored-without-limit': warning(),
  'ignored-value-to-metric': warning('Remove one of the two.'),
  'unreachable-rule': warning(),
  'replaces-unknown-name': warning(),
  'replaces-unlimited': warning('Remove this entry, or name a rule that has a limit.'),
  'zero-limit-for-all': warning(
    'To allow them all, write `unlimited: true`; if the ban is intended, add `value: "*"` to make it explicit.',
  ),
  'unbounded-metric': warning(),
  'times-without-effect': warning('Change one of the settings, or give rules a policy.'),
  'store-without-scripts': error('Remove it, or use another store.'),
  'lease-without-effect': warning('Remove `lease`, or what keeps it from having an effect.'),
} as const;

function error<Advice extends string = ''>(advice = '' as Advice) {
  return { severity: 'error', advice } as const;
}

function warning<Advice extends string = ''>(advice = '' as Advice) {
  return { severity: 'warning', advice } as const;
}

export type ProblemCode = keyof typeof PROBLEMS;
export type Severity = (typeof PROBLEMS)[ProblemCode]['severity'];

/** The problems whose advice does not depend on the place. */
export type AdvisedCode = {
  [Code in ProblemCode]: (typeof PROBLEMS)[Code]['advice'] extends '' ? never : Code;
}[ProblemCode];

/** What is wrong, without the place. */
export type ProblemDetails = {
  /** What is wrong, in the words of the Go service where it has a message for the same mistake. */
  readonly message: string;
} & (
  { readonly code: AdvisedCode; readonly advice?: string } | { readonly code: ProblemCode; readonly advice: string }
);

/** One problem at one place of a rule file. Plain data: it survives a structured clone and prints as JSON. */
export interface Problem {
  readonly code: ProblemCode;
  readonly severity: Severity;
  readonly message: string;
  /** What to do about it. */
  readonly advice: string;
  /** The file's path as it was given. */
  readonly file: string;
  /** Counted from 1; 0 when the problem concerns the file or folder as a whole. */
  readonly line: number;
  /** Counted from 1, in characters (code points), not in bytes. */
  readonly column: number;
  /** The text of the line; of a very long line, the part around the place, with `…` where it is cut. */
  readonly sourceLine: string;
  /** The marked part of {@link sourceLine}: start counted from 0, length at least 1, both in UTF-16 code units. */
  readonly mark: { readonly start: number; readonly length: number };
}

/** A problem with a file or folder as a whole: its line is 0. */
export function folderProblem(file: string, details: ProblemDetails): Problem {
  const mark = { start: 0, length: 1 };
  return { ...PROBLEMS[details.code], ...details, file, line: 0, column: 0, sourceLine: '', mark };
}

/**
 * A problem in human-readable form, on several lines:
 *
 * ```
 * api.yaml:7:13: error: invalid rate limit unit 'minut' [invalid-unit]
 *   |       unit: minut
 *   |             ^^^^^
 *   Did you mean `minute`? …
 * ```
 */
export function formatProblem(problem: Problem): string {
  const { severity, message, code, sourceLine, advice } = problem;
  const head = visibleLines([`${positionOf(problem)}: ${severity}: ${message} [${code}]`]);
  const shown = sourceLine.trim() === '' ? [] : [`  | ${visible(sourceLine)}`, `  | ${underline(problem)}`];
  return [head, ...shown, visibleLine(`  ${advice}`)].join('\n');
}

/** A problem on one line, for a log. */
export function summarizeProblem(problem: Problem): string {
  return visibleLine(`${positionOf(problem)}: ${problem.message}. ${problem.advice}`);
}

function positionOf({ file, line, column }: Problem): string {
  return line === 0 ? file : `${file}:${line}:${column}`;
}

/**
 * Carets under the marked part. The indentation keeps its width: a tab stays a tab, a wide character takes two columns.
 */
function underline({ sourceLine, mark }: Problem): string {
  const before = visible(sourceLine.slice(0, mark.start));
  const indent = Array.from(before, (character) =>
    character === '\t' ? '\t' : ' '.repeat(displayWidth(character)),
  ).join('');
  const marked = visible(sourceLine.slice(mark.start, mark.start + mark.length));
  return indent + '^'.repeat(Math.max(1, displayWidth(marked)));
}

/** Characters that take two columns in a terminal: East Asian scripts, full-width forms and emoji. */
const WIDE = new RegExp(
  String.raw`[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3]|` +
    String.raw`[\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]`,
  'u',
);
/** Characters that take no column: accents and joiners, which combine with the preceding character. */
const ZERO_WIDTH = /[\p{Mn}\p{Me}\p{Cf}]/u;

/** The number of columns that a text without tabs takes in a terminal. */
function displayWidth(text: string): number {
  let width = 0;
  for (const character of text) width += ZERO_WIDTH.test(character) ? 0 : WIDE.test(character) ? 2 : 1;
  return width;
}
