import { type Schema, ref } from './schemas';

export interface Parameter {
  readonly name: string;
  readonly in: 'query' | 'path';
  readonly required?: boolean;
  readonly description: string;
  readonly schema: Schema;
  readonly example?: unknown;
}

interface Content {
  readonly [mediaType: string]: { readonly schema?: Schema; readonly example?: unknown };
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: true; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content: Content }>>;
}

export type PathItem = Readonly<Partial<Record<'get' | 'put' | 'post' | 'patch' | 'delete', Operation>>>;

const JSON_TYPE = 'application/vnd.weir+json; version=1';
const TOKEN = [{ operatorToken: [] }];
/** The token is needed only if one is set. */
const TOKEN_IF_SET = [...TOKEN, {}];

function responses(description: string, schema: Schema): Operation['responses'] {
  return {
    200: { description, content: { [JSON_TYPE]: { schema } } },
    default: { description: 'an error', content: { 'application/problem+json': { schema: ref('Problem') } } },
  };
}

const COUNTER: readonly Parameter[] = [
  {
    name: 'domain',
    in: 'query',
    required: true,
    description: 'the domain',
    schema: { type: 'string' },
    example: 'shop',
  },
  {
    name: 'descriptor',
    in: 'query',
    required: true,
    description: 'key=value,key2=value2, or a descriptor in JSON',
    schema: { type: 'string' },
    example: 'user=ann',
  },
];

function change(operationId: string): Operation {
  return {
    operationId,
    summary: 'Sets the counter of the current window of a descriptor.',
    security: TOKEN,
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: ref('CounterBody'),
          example: { domain: 'shop', descriptor: 'user=ann', count: 0 },
        },
      },
    },
    responses: responses('the counter after the change', ref('CounterChange')),
  };
}

/** The paths of the API without the prefix of its server. */
export const PATHS: Readonly<Record<string, PathItem>> = {
  '/rules': {
    get: {
      operationId: 'listRules',
      summary: 'The active rules as a tree, with where they are configured and what was counted.',
      responses: responses('the rules of all domains', ref('Rules')),
    },
  },
  '/rules/{id}': {
    get: {
      operationId: 'showRules',
      summary: 'The active rules of one domain.',
      parameters: [
        {
          name: 'id',
          in: 'path',
          required: true,
          description: 'the domain',
          schema: { type: 'string' },
          example: 'shop',
        },
      ],
      responses: responses('the rules of the domain', ref('Rules')),
    },
  },
  '/explanations': {
    post: {
      operationId: 'explainRequest',
      summary: 'What would be answered to a request, and why. Nothing is counted.',
      security: TOKEN_IF_SET,
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: ref('Request'),
            example: { domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'ann' }], hitsAddend: 2 }] },
          },
        },
      },
      responses: responses('the explanation', ref('Explanation')),
    },
  },
  '/counters': {
    get: {
      operationId: 'showCounter',
      summary: 'The counter of the current window of a descriptor.',
      security: TOKEN_IF_SET,
      parameters: COUNTER,
      responses: responses('the counter', ref('Counter')),
    },
    put: change('setCounter'),
    patch: change('setCounterToo'),
    delete: {
      operationId: 'clearCounter',
      summary: 'Clears the counter of the current window of a descriptor.',
      security: TOKEN,
      parameters: COUNTER,
      responses: responses('the counter after the change', ref('CounterChange')),
    },
  },
  '/offenders': {
    get: {
      operationId: 'listOffenders',
      summary: 'The callers that are limited most.',
      security: TOKEN_IF_SET,
      parameters: [
        {
          name: 'domain',
          in: 'query',
          description: 'only of this domain',
          schema: { type: 'string' },
          example: 'shop',
        },
        {
          name: 'top',
          in: 'query',
          description: 'how many at most; 20 by default',
          schema: { type: 'integer', minimum: 1, maximum: 1000 },
          example: 5,
        },
      ],
      responses: responses('those with the most limited calls first', ref('Offenders')),
    },
  },
  '/statistics': {
    get: {
      operationId: 'showStatistics',
      summary: 'The current value of every statistic, by name.',
      responses: responses('the statistics', ref('Statistics')),
    },
  },
  '/health': {
    get: {
      operationId: 'showHealth',
      summary: 'Whether the service is healthy.',
      responses: responses('the health', ref('Health')),
    },
  },
  '/settings': {
    get: {
      operationId: 'showSettings',
      summary: 'Every setting with its value and its source; secrets are masked.',
      responses: responses('the settings', ref('Settings')),
    },
  },
  '/openapi': {
    get: {
      operationId: 'showDescription',
      summary: 'This description; also at /openapi.json.',
      responses: {
        200: { description: 'an OpenAPI document', content: { 'application/openapi+json; version=3.1': {} } },
        default: { description: 'an error', content: { 'application/problem+json': { schema: ref('Problem') } } },
      },
    },
  },
};
