import type { Decision } from '../../limiter/decision';
import { DecisionError } from '../../limiter/decision-error';
import { describeDecision } from '../../limiter/decisions-metadata';
import { outcomeOf } from '../../limiter/descriptor-outcome';
import type { Entry, RateLimitRequest } from '../../limiter/request';
import type { Resolution } from '../../limiter/resolution';
import { CODE_NAMES, type DescriptorStatus, type Verdict } from '../../limiter/verdict';
import type { Json, JsonObject } from '../../rules/rule-config';

/** How many descriptors of a request, and entries of a descriptor, a record has. */
const MOST_LISTED = 20;
/** How many characters of one text a record has, and of all of them together. */
const LONGEST_TEXT = 256;
const MOST_TEXT = 8192;

/** What a record has besides the decision. */
export interface RecordContext {
  /** Unix time in milliseconds. */
  readonly now: number;
  /** `host:port`; undefined if it is not known. */
  readonly caller: string | undefined;
  readonly traceId: string | undefined;
}

/** The record of a decision, as schema/decision-log.schema.json describes it. Texts and lists of callers are shortened. */
export function decisionRecord(
  decision: Decision,
  outcome: Verdict | DecisionError,
  context: RecordContext,
): JsonObject {
  const { request, resolutions, isOver } = decision;
  const texts = new Excerpts();
  if (outcome instanceof DecisionError) {
    return {
      ...headOf(request, context, texts),
      ...errorOf(outcome),
      ...listOf(request, texts, (index) => describeFailed(resolutions[index] as Resolution)),
      ...sourceOf(context),
    };
  }
  const code = CODE_NAMES[outcome.overallCode];
  return {
    ...headOf(request, context, texts),
    code,
    ...(isOver && code === 'OK' && { shadowMode: true }),
    ...listOf(request, texts, (index) =>
      describe(resolutions[index] as Resolution, outcome.statuses[index] as DescriptorStatus),
    ),
    ...sourceOf(context),
  };
}

/** The record of a request that was rejected before it was decided. */
export function rejectionRecord(request: RateLimitRequest, error: DecisionError, context: RecordContext): JsonObject {
  const texts = new Excerpts();
  return {
    ...headOf(request, context, texts),
    ...errorOf(error),
    ...listOf(request, texts, () => ({})),
    ...sourceOf(context),
  };
}

function headOf({ domain }: RateLimitRequest, { now }: RecordContext, texts: Excerpts): JsonObject {
  return { type: 'decision', time: new Date(now).toISOString(), domain: texts.of(domain) };
}

function errorOf({ code, message }: DecisionError): JsonObject {
  return { error: { code, message } };
}

function sourceOf({ caller, traceId }: RecordContext): JsonObject {
  return { ...(caller !== undefined && { caller }), ...(traceId !== undefined && { traceId }) };
}

function describe(resolution: Resolution, status: DescriptorStatus): JsonObject {
  const { limited } = resolution;
  return { ...(limited !== undefined && { hits: limited.callHits }), ...describeDecision(resolution, status) };
}

/** Of a decision without a verdict, only the rule is known. */
function describeFailed(resolution: Resolution): JsonObject {
  const { rule } = outcomeOf(resolution);
  return rule === undefined ? {} : { rule };
}

function listOf(
  { descriptors }: RateLimitRequest,
  texts: Excerpts,
  describeAt: (index: number) => JsonObject,
): JsonObject {
  const listed: Json[] = descriptors
    .slice(0, MOST_LISTED)
    .map(({ entries }, index) => ({ ...entriesOf(entries, texts), ...describeAt(index) }));
  const more = descriptors.length - listed.length;
  return { descriptors: listed, ...(more > 0 && { moreDescriptors: more }) };
}

function entriesOf(entries: readonly Entry[], texts: Excerpts): JsonObject {
  const listed = entries.slice(0, MOST_LISTED).map(({ key, value }) => `${texts.of(key)}=${texts.of(value)}`);
  const more = entries.length - listed.length;
  return { entries: listed, ...(more > 0 && { moreEntries: more }) };
}

/** The beginnings of the texts of one record. */
class Excerpts {
  #left = MOST_TEXT;

  of(text: string): string {
    const most = Math.min(LONGEST_TEXT, this.#left);
    this.#left -= Math.min(text.length, most);
    return text.length <= most ? text : `${text.slice(0, most)}…`;
  }
}
