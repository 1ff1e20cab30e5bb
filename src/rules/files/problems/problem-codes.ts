/**
 * Every problem that a rule file can have, by code. An error prevents the files from loading; a warning is about something
 * that loads, but has less effect than it seems to have. `docs/rule-errors.md` explains each code.
 */
export const PROBLEM_CODES = {
  // The folder.
  'unreadable-folder': 'error',
  'unreadable-file': 'error',
  'folder-too-large': 'error',
  'no-rule-files': 'warning',
  'ignored-files': 'warning',
  'linked-folders': 'warning',
  // The file as a whole.
  'file-too-large': 'error',
  'invalid-utf8': 'error',
  'control-character': 'error',
  // YAML.
  'yaml-syntax': 'error',
  'tab-indentation': 'error',
  'yaml-version': 'error',
  'unsupported-tag': 'error',
  'unknown-anchor': 'error',
  'anchor-contains-itself': 'error',
  'too-many-aliases': 'error',
  'nested-too-deeply': 'error',
  'invalid-merge': 'error',
  // Shape.
  'not-a-mapping': 'error',
  'key-not-text': 'error',
  'unknown-key': 'error',
  'list-item-not-a-mapping': 'error',
  'wrong-type': 'error',
  // Meaning.
  'empty-domain': 'error',
  'duplicate-domain': 'error',
  'empty-key': 'error',
  'duplicate-descriptor': 'error',
  'invalid-unit': 'error',
  'unit-when-unlimited': 'error',
  'missing-requests-per-unit': 'error',
  'invalid-requests-per-unit': 'error',
  'empty-replaces': 'error',
  'replaces-itself': 'error',
  'share-threshold-without-wildcard': 'error',
  'invalid-metadata': 'error',
  // What loads, but has less effect than it seems to have.
  'second-document': 'warning',
  'ignored-tag': 'warning',
  'repeated-key': 'warning',
  'merge-overrides-key': 'warning',
  'merged-rate-limit': 'warning',
  'misplaced-key': 'warning',
  'empty-field': 'warning',
  'octal-number': 'warning',
  'no-descriptors': 'warning',
  'wildcard-in-key': 'warning',
  'ignored-when-unlimited': 'warning',
  'ignored-without-limit': 'warning',
  'ignored-value-to-metric': 'warning',
  'unreachable-rule': 'warning',
  'replaces-unknown-name': 'warning',
  'replaces-unlimited': 'warning',
  'zero-limit-for-all': 'warning',
  'unbounded-metric': 'warning',
} as const;

export type ProblemCode = keyof typeof PROBLEM_CODES;
export type Severity = (typeof PROBLEM_CODES)[ProblemCode];
