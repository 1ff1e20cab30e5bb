import { interval } from '../values/duration';
import { fraction, wholeNumber } from '../values/numbers';
import { anyText, boolean, choice, headerName } from '../values/value-type';
import { is, isNot } from './condition';
import { derived, group, noDefault, setting } from './setting';

const decisionSettings = group({
  title: 'Decisions',
  settings: [
    setting('NEAR_LIMIT_RATIO', fraction, 0.8)`Fraction of a limit above which hits are near the limit.`,
    setting('SHADOW_MODE', boolean, false)`Allows every request, but still counts those that are over their limits.`,
    setting('QUOTA_MODE', boolean, false)`
      Every rule is a quota: a request is allowed while one of its quotas allows it.`,
    setting('RESPONSE_DYNAMIC_METADATA', boolean, false)`
      Responses have dynamic metadata: the request, the metadata of its rules, and how it was decided.`,
    setting('RESPONSE_DYNAMIC_METADATA_DECISIONS', boolean, true, is('RESPONSE_DYNAMIC_METADATA', 'true'))`
      Includes how each descriptor was decided; false: exactly as the Go service.`,
    setting('LIMIT_NAME_FROM_RULE', boolean, false)`
      In responses, a limit without a name has the path of its rule.`,
  ],
});

const DRAFT_03 = [is('LIMIT_RESPONSE_HEADERS_ENABLED', 'true'), isNot('LIMIT_RESPONSE_HEADERS', 'structured')];
const ENABLED_BY_FORMAT = derived(
  'true if LIMIT_RESPONSE_HEADERS is set to another value than off, else false',
  (stateOf) => !['off', undefined].includes(stateOf('LIMIT_RESPONSE_HEADERS').value),
);

const headerForms = choice({ off: [], draft03: [], structured: [], both: [] });
const BY_SWITCH = 'draft03 if LIMIT_RESPONSE_HEADERS_ENABLED is true, else off';

const responseHeaderSettings = group({
  title: 'Response headers',
  settings: [
    setting('LIMIT_RESPONSE_HEADERS_ENABLED', boolean, ENABLED_BY_FORMAT)`
      Adds headers to responses to which a limit applies.`,
    setting('LIMIT_RESPONSE_HEADERS', headerForms, noDefault(BY_SWITCH))`
      The three headers below, those of the IETF draft 11 (RateLimit, RateLimit-Policy), or both.`,
    setting('LIMIT_LIMIT_HEADER', headerName, 'RateLimit-Limit', ...DRAFT_03)`
      Header with the requests that the limit allows.`,
    setting('LIMIT_REMAINING_HEADER', headerName, 'RateLimit-Remaining', ...DRAFT_03)`
      Header with the requests that remain in the window.`,
    setting('LIMIT_RESET_HEADER', headerName, 'RateLimit-Reset', ...DRAFT_03)`
      Header with the end of the window.`,
    setting('LIMIT_RESET_HEADER_FORMAT', choice({ seconds: [], timestamp: [] }), 'seconds', ...DRAFT_03)`
      The seconds until then, or the Unix time in seconds.`,
    setting('LIMIT_RETRY_AFTER_ENABLED', boolean, false)`
      Adds Retry-After to denials: the seconds until the call may pass, rounded up.`,
  ],
});

const LOGGED = is('DECISION_LOG', 'denied', 'all');
const COUNTED = isNot('OFFENDERS_SIZE', '0');

const explanationSettings = group({
  title: 'Explanations of decisions',
  settings: [
    setting('DECISION_LOG', choice({ off: [], denied: [], all: [] }), 'off')`
      Decisions to write as JSON lines: those over a limit, also in shadow mode, or all and errors.`,
    setting('DECISION_LOG_SAMPLE', fraction, 1, LOGGED)`Share of them that is written.`,
    setting('DECISION_LOG_OUTPUT', anyText('stdout, stderr, or a file path'), 'stdout', LOGGED)`
      Where: standard output, standard error between the lines of the log, or a file to append to.`,
    setting('UNMATCHED_WARNINGS', boolean, true)`
      Warns about calls to which no rule applies, with the nearest rule; at most five lines per minute.`,
    setting('OFFENDERS_SIZE', wholeNumber({ min: 0, max: 100_000 }), 1000)`
      Descriptors over their limits that are counted at a time, to find those limited most; 0: none.`,
    setting('OFFENDERS_WINDOW', interval(1000), 600_000, COUNTED)`
      Period of these counts, which cover this one and the one before.`,
    setting('OFFENDERS_METRICS', wholeNumber({ min: 0, max: 1000 }), 0, COUNTED, is('USE_PULLMETRICS', 'true'))`
      Descriptors limited most that Prometheus gets, with their texts as labels.`,
  ],
});

export const decisionGroups = [decisionSettings, responseHeaderSettings, explanationSettings] as const;
