/** A JSON schema of the dialect of OpenAPI 3.1, as far as it is used here. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly enum?: readonly (string | null)[];
  readonly anyOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly format?: string;
}

const text: Schema = { type: 'string' };
const flag: Schema = { type: 'boolean' };
const count: Schema = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
const time: Schema = { type: 'string', format: 'date-time' };

export function ref(name: keyof typeof SCHEMAS): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

/** An object that has exactly these members. */
function object(properties: Readonly<Record<string, Schema>>, description?: string): Schema {
  return {
    type: 'object',
    ...(description !== undefined && { description }),
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  };
}

function list(items: Schema): Schema {
  return { type: 'array', items };
}

function orNull(schema: Schema): Schema {
  return { anyOf: [schema, { type: 'null' }] };
}

function described(schema: Schema, description: string): Schema {
  return { ...schema, description };
}

const unit: Schema = { enum: ['SECOND', 'MINUTE', 'HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR'] };
const code: Schema = { enum: ['OK', 'OVER_LIMIT'] };
const toRule = { $ref: '#/components/schemas/RuleReference' };
const toPlace = { $ref: '#/components/schemas/Place' };
const entries = list(object({ key: text, value: text }));
const nearest = orNull(
  object({ rule: orNull(toRule), difference: text }, 'the rule that nearly matches, and why it does not'),
);

const counterState = {
  cacheKey: described(text, 'the key in the store'),
  rule: orNull(toRule),
  requestsPerUnit: count,
  unit,
  name: described(text, 'of the rule; empty if it has none'),
  count,
  timeToLive: described(
    { type: ['integer', 'null'] },
    'seconds until the store removes the counter; null if that is not known',
  ),
  windowStart: time,
  windowEnd: time,
  isInLocalCache: described(flag, 'whether the local cache has it as over the limit'),
};

/** The schemas of the bodies. */
export const SCHEMAS = {
  Problem: {
    type: 'object',
    description: 'an error, RFC 9457',
    properties: { title: text, status: { type: 'integer' }, code: text, detail: text },
    required: ['title', 'status', 'code', 'detail'],
  },
  Place: object(
    { file: text, line: { type: 'integer' }, column: { type: 'integer' } },
    'where a rule is configured; lines of xDS resources are 0',
  ),
  RuleReference: object({ statisticsKey: text, key: text, value: text, place: orNull(toPlace) }),
  Totals: object(
    { hits: count, within: count, near: count, over: count, overByLocalCache: count, shadow: count },
    'hits since the start of the process',
  ),
  Rule: object({
    key: text,
    value: described(text, 'empty: any value matches'),
    place: orNull(toPlace),
    limit: orNull(
      object({
        unlimited: flag,
        unit: orNull(unit),
        requestsPerUnit: { type: ['integer', 'null'] },
        name: text,
        replaces: list(text),
      }),
    ),
    shadowMode: flag,
    quotaMode: flag,
    shareThreshold: flag,
    detailedMetric: flag,
    valueToMetric: flag,
    metadata: { type: ['object', 'null'] },
    statisticsKey: text,
    totals: orNull({ $ref: '#/components/schemas/Totals' }),
    descriptors: list({ $ref: '#/components/schemas/Rule' }),
  }),
  Rules: object({
    loaded: orNull(object({ source: text, version: text, at: time, rules: count })),
    rejected: orNull(object({ reason: text, at: time }, 'the last load, if it was rejected')),
    domains: list(object({ domain: text, descriptors: list({ $ref: '#/components/schemas/Rule' }) })),
  }),
  Request: {
    type: 'object',
    description: 'a RateLimitRequest in proto3 JSON, as for /json; names may also be those of the protocol',
    properties: {
      domain: text,
      descriptors: list({ $ref: '#/components/schemas/Descriptor' }),
      hitsAddend: { type: 'integer', minimum: 0 },
    },
    required: ['domain', 'descriptors'],
  },
  Descriptor: {
    type: 'object',
    properties: {
      entries,
      limit: { type: 'object', properties: { requestsPerUnit: { type: 'integer', minimum: 0 }, unit } },
      hitsAddend: { type: 'integer', minimum: 0 },
      isNegativeHits: flag,
    },
  },
  Explanation: object({
    domain: text,
    at: time,
    descriptors: list({ $ref: '#/components/schemas/ExplainedDescriptor' }),
    answer: orNull(
      object({ overallCode: code, reason: text, responseHeaders: list(object({ key: text, value: text })) }),
    ),
    error: orNull(object({ code: text, message: text }, 'why there would be no answer')),
  }),
  ExplainedDescriptor: object({
    entries,
    steps: list(
      object({
        key: text,
        value: text,
        candidates: list(object({ rule: toRule, outcome: { enum: ['chosen', 'passed over', 'not tried'] } })),
        omitted: described(count, 'candidates that are not listed'),
        otherValues: described(count, 'rules of the key with another value'),
        keys: described(list(text), 'when no rule has the key: those of the level'),
      }),
    ),
    outcome: {
      enum: [
        'limit',
        'unlimited',
        'replaced',
        'override',
        'no limit',
        'no match',
        'too deep',
        'no entries',
        'unknown domain',
      ],
    },
    rule: orNull(toRule),
    replacedBy: orNull(toRule),
    nearest,
    counter: orNull(
      object({
        cacheKey: text,
        requestsPerUnit: count,
        unit,
        name: text,
        shadowMode: flag,
        quotaMode: flag,
        hits: count,
        isNegativeHits: flag,
        isInLocalCache: flag,
        count: { type: ['integer', 'null'] },
        countAfter: { type: ['integer', 'null'] },
        windowStart: time,
        resetAt: time,
      }),
    ),
    status: orNull(object({ code, limitRemaining: count, secondsUntilReset: { type: ['integer', 'null'] } })),
    reason: text,
  }),
  Counter: object(counterState),
  CounterChange: object({ ...counterState, countBefore: count }),
  CounterBody: object({
    domain: text,
    descriptor: { anyOf: [described(text, 'key=value,key2=value2'), { $ref: '#/components/schemas/Descriptor' }] },
    count,
  }),
  Offenders: object({
    offenders: list(
      object({
        domain: text,
        rule: described(text, 'its path; empty for limits sent with requests'),
        descriptor: text,
        isShadow: flag,
        limited: described(count, 'calls over the limit, an estimate'),
        error: described(count, 'at most so many of them are of other descriptors'),
      }),
    ),
  }),
  Statistics: object({ statistics: { type: 'object', additionalProperties: { type: ['number', 'null'] } } }),
  Health: object({ healthy: flag, unhealthy: described(list(text), 'the components that are not') }),
  Settings: object({
    settings: list(
      object({ name: text, source: { enum: ['environment', 'file', 'default'] }, value: { type: ['string', 'null'] } }),
    ),
  }),
} satisfies Readonly<Record<string, Schema>>;
