import type { Action, Api, ControllerClass } from '#versioning';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { Explanation } from '../../explain/explanation';
import { type Descriptor, NO_HITS_ADDEND } from '../../limiter/request';
import type { Log } from '../../log/log';
import type { CounterChange, CounterQuery, CounterState, NoCounter } from '../../operators/answers';
import type { InstanceReport } from '../../operators/live-answers';
import type { Operator } from '../../operators/operator';
import { MOST_WATCHES } from '../../operators/fleet/watches';
import { excerpt } from '../../text/excerpt';
import { ownText } from '../../text/table-key';
import { ipAddress } from '../../text/host-port';
import { inPieces } from '../../net/turns';
import { type BodyMemory, receiveText } from '../body';
import { HttpError, invalidRequest } from '../errors';
import { type CounterBody, readCounter, readDescriptorText, readExplained } from '../json/read-request';
import { jsonText, rulesText, statisticsText, textsOf } from './answer-texts';
import type { Access, Authorization } from './authorization';
import type { EventStreams } from './event-streams';

export interface OperatorsApiOptions {
  readonly operator: Operator;
  readonly authorization: Authorization;
  readonly log: Log;
}

/** What the requests of the API are answered with. */
export interface OperatorsState extends OperatorsApiOptions {
  /** For the bodies of all requests. */
  readonly memory: BodyMemory;
  readonly explanations: Explanations;
  readonly streams: EventStreams;
}

/** A request of the API; route versioning makes one for each. */
class OperatorsRequest {
  readonly ctx: Context;
  readonly state: OperatorsState;
  readonly operator: Operator;

  constructor(ctx: Context) {
    this.ctx = ctx;
    this.state = ctx.state;
    this.operator = this.state.operator;
  }

  /** @returns the name of the token; @throws without one that permits it, if one is needed */
  authorize(access: Access): string | undefined {
    return this.state.authorization.check(this.ctx, access);
  }

  /** The parameters of its query, each at most once. Rejects others. */
  parameters<const Name extends string>(...names: readonly Name[]): Readonly<Partial<Record<Name, string>>> {
    for (const [name, value] of Object.entries(this.ctx.query)) {
      if (!(names as readonly string[]).includes(name)) {
        const unknown = JSON.stringify(name.slice(0, 40));
        throw invalidRequest(`there is no parameter ${unknown}; the parameters are ${names.join(', ')}`);
      }
      if (typeof value !== 'string') throw invalidRequest(`the parameter ${name} is repeated`);
    }
    return this.ctx.query as Readonly<Partial<Record<Name, string>>>;
  }

  readJson(): Promise<string> {
    return receiveText(this.ctx, this.state.memory);
  }

  /** Answers with a line of JSON that is written while it is generated, at the pace of the caller. */
  stream(json: Iterable<string>): void {
    this.ctx.type = 'application/json';
    this.ctx.body = Readable.from(inPieces(line(json)), { objectMode: false });
  }
}

function* line(json: Iterable<string>): Generator<string, void, void> {
  yield* json;
  yield '\n';
}

/** How much of a caller's text is logged, in characters. */
const LONGEST_TEXT = 256;
/** How much of a list of domains is in a message, in characters. */
const LONGEST_LIST = 1_000;

const COUNTER_PARAMETERS = ['domain', 'descriptor', 'window'] as const;

async function readCounterOf(request: OperatorsRequest): Promise<CounterState> {
  request.authorize('private');
  return found(await request.operator.decisions.readCounter(queryOf(request.parameters(...COUNTER_PARAMETERS))));
}

async function setCounter(request: OperatorsRequest): Promise<CounterChange> {
  const name = request.authorize('write');
  request.parameters();
  const { count, ...members } = readCounter(await request.readJson());
  if (count === undefined) throw missing('count');
  return changeCounter(request, { ...members, count }, name);
}

function clearCounter(request: OperatorsRequest): Promise<CounterChange> {
  const name = request.authorize('write');
  return changeCounter(request, { ...request.parameters(...COUNTER_PARAMETERS, 'reason'), count: null }, name);
}

/** @param members its count, or null to clear it @param name that of the token */
async function changeCounter(
  { operator, ctx, state }: OperatorsRequest,
  { reason, count, ...members }: CounterMembers & { readonly count: number | null },
  name = '',
): Promise<CounterChange> {
  if (reason !== undefined && reason.length > LONGEST_TEXT) {
    throw invalidRequest(`the reason has more than ${LONGEST_TEXT} characters`);
  }
  const query = queryOf(members);
  const change = found(await operator.decisions.changeCounter(query, count));
  const { entries } = query.descriptor;
  const [domain, descriptor] = [query.domain, entries.map(({ key, value }) => `${key}=${value}`).join(',')].map(
    (text) => ownText(excerpt(text, LONGEST_TEXT)),
  ) as [string, string];
  const { countBefore: before, count: after } = change;
  const window = change.windows.length > 1 ? change.window : null;
  const from = ipAddress(ctx.req.socket) ?? '';
  const what = count === null ? 'counter cleared' : 'counter set';
  const changed = { domain, descriptor, before, after };
  const kept = reason === undefined ? null : ownText(reason);
  operator.addChange({ ...changed, name, from, what, window, reason: kept });
  state.log.notice(`${what} by an operator`, {
    ...{ domain, descriptor, ...(window !== null && { window }), before, after, peer: from, operator: name },
    ...(reason !== undefined && { reason }),
  });
  return change;
}

async function listChanges(request: OperatorsRequest): Promise<object> {
  request.authorize('report');
  return { changes: await request.operator.changes(upTo999('top', request.parameters('top').top)) };
}

function listConfigurations(request: OperatorsRequest): void {
  request.parameters();
  const configurations = Object.entries(request.operator.configurations).map(([name, configuration]) => {
    return [name, configuration && { ...configuration, files: configuration.files && textsOf(configuration.files) }];
  });
  request.stream(jsonText(Object.fromEntries(configurations), 4));
}

/** Another instance says that it ends. */
async function takeLeave(request: OperatorsRequest): Promise<object> {
  request.authorize('report');
  const { id } = request.ctx.params as { readonly id: string };
  await request.operator.taking(id);
  return { id };
}

function openEvents(request: OperatorsRequest): void {
  request.parameters();
  const { ctx, state } = request;
  const { authorization, streams } = state;
  const seesCallers = authorization.seesCallers(ctx);
  const role = authorization.roleOf(ctx);
  if (role !== undefined) ctx.set('Weir-Operator-Role', role);
  streams.open(ctx, () => seesCallers && authorization.seesCallers(ctx));
}

/** More explanations that wait are rejected. */
const MAX_EXPLANATIONS = 20;

/** Explains one request after the other, as each may take some CPU time. */
export class Explanations {
  #last: Promise<unknown> = Promise.resolve();
  #count = 0;

  /** @throws HttpError with status 429 when too many wait */
  run(explain: () => Promise<Explanation>): Promise<Explanation> {
    if (this.#count === MAX_EXPLANATIONS) {
      const message = `${MAX_EXPLANATIONS} explanations are made or wait already`;
      throw new HttpError({ status: 429, code: 'busy', message, headers: { 'Retry-After': '1' } });
    }
    this.#count += 1;
    const explanation = this.#last.then(explain).finally(() => (this.#count -= 1));
    this.#last = explanation.catch(() => undefined);
    return explanation;
  }
}

async function createExplanation(request: OperatorsRequest): Promise<Explanation> {
  request.authorize('private');
  // The type of the body is not examined, as nothing is changed.
  const { limit, ...explained } = readExplained(await request.readJson());
  return request.state.explanations.run(() => request.operator.decisions.explain(explained, limit));
}

/** Without the operator token, values of settings and callers are left out; the long lists come last. */
async function showFleet(request: OperatorsRequest): Promise<void> {
  request.parameters();
  const seesAll = request.state.authorization.seesCallers(request.ctx);
  const { instances, differences, offenders, ...rest } = await request.operator.fleet();
  const shown = differences.map((difference) => {
    if (seesAll || difference.aspect !== 'settings') return difference;
    const values = difference.values.map((each) => ({ value: null, instances: each.instances }));
    return { ...difference, isHidden: true, values };
  });
  const fleet = { ...rest, offenders: seesAll ? offenders : null, instances, differences: shown };
  request.stream(jsonText(fleet, 2));
}

async function showHistory(request: OperatorsRequest): Promise<void> {
  const { instance, since, most } = request.parameters('since', 'instance', 'most');
  if (since !== undefined && !/^\d{1,12}$/.test(since)) throw invalidRequest('since must be a time in Unix seconds');
  const history = await request.operator.history({
    ...{ instance, since: since === undefined ? undefined : Number(since), most: upTo999('most', most) },
  });
  if (history !== undefined) return request.stream(jsonText(history, 2));
  throw new HttpError({ status: 404, code: 'not_found', message: 'there is no history of this instance' });
}

function showInstance(request: OperatorsRequest): Promise<InstanceReport> {
  request.authorize('report');
  return request.operator.report();
}

function listLoads(request: OperatorsRequest): object {
  request.parameters();
  return { loads: request.operator.loads };
}

const DEFAULT_TOP = 20;
const MAX_TOP = 1_000;

async function listOffenders(request: OperatorsRequest): Promise<object> {
  request.authorize('private');
  const { domain, top = String(DEFAULT_TOP) } = request.parameters('domain', 'top');
  const limit = /^[1-9]\d{0,3}$/.test(top) ? Number(top) : Infinity;
  if (limit > MAX_TOP) throw invalidRequest(`top must be a whole number from 1 to ${MAX_TOP}`);
  return { offenders: await request.operator.offenders({ domain, limit }) };
}

/** The description of the API. The compiled file and this one are equally deep below it. */
const OPENAPI = readFileSync(join(__dirname, '../../../schema/operators-api.json'));

function showOpenapi({ ctx }: OperatorsRequest): void {
  ctx.set('Content-Type', 'application/openapi+json; version=3.1');
  ctx.body = OPENAPI;
}

/** The rules of a domain, or all. */
async function showRules(request: OperatorsRequest): Promise<void> {
  const { id: domain } = request.ctx.params;
  const { perKey } = request.ctx.query;
  const most = upTo999('perKey', perKey === undefined ? undefined : String(perKey));
  const listing = await request.operator.rules({ domain, perKey: most });
  if ('knownDomains' in listing) {
    const known = excerpt(listing.knownDomains.join(', '), LONGEST_LIST);
    const have = known === '' ? 'they have none' : `their domains are ${known}`;
    const message = `the active rules have no such domain; ${have}`;
    throw new HttpError({ status: 404, code: 'unknown_domain', message });
  }
  request.stream(rulesText(listing));
}

function showSettings(request: OperatorsRequest): object {
  request.authorize('private');
  return { settings: request.operator.settings };
}

/** How much of a descriptor is watched, in characters. */
const LONGEST_WATCHED = 1_024;

async function watch(request: OperatorsRequest): Promise<object> {
  request.authorize('report');
  const { own, ...members } = request.parameters('domain', 'descriptor', 'own');
  if (own !== undefined && own !== 'true') throw invalidRequest('own must be true');
  const { domain, descriptor } = queryOf(members);
  const entries = descriptor.entries.map(({ key, value }) => ({ key, value }));
  if (entries.reduce((sum, { key, value }) => sum + key.length + value.length, domain.length) > LONGEST_WATCHED) {
    throw invalidRequest(`a descriptor that is watched has at most ${LONGEST_WATCHED} characters with its domain`);
  }
  const counts = await request.operator.watch({ domain, entries }, own === 'true');
  if (counts !== null) return counts;
  const message = `${MOST_WATCHES} callers are watched; each is until ten minutes after the last request for it`;
  throw new HttpError({ status: 429, code: 'too_many_watches', message, headers: { 'Retry-After': '60' } });
}

type Answers = Readonly<Partial<Record<Action, (request: OperatorsRequest) => unknown>>>;

/** What is answered to each action of each resource: of those with a list or ids, and of the others. */
const ANSWERS: Readonly<Record<'resources' | 'resource', Readonly<Record<string, Answers>>>> = {
  resources: {
    changes: { index: listChanges },
    configurations: { index: listConfigurations },
    departures: { update: takeLeave },
    loads: { index: listLoads },
    offenders: { index: listOffenders },
    rules: { index: showRules, show: showRules },
    watches: { index: watch },
  },
  resource: {
    counters: { show: readCounterOf, update: setCounter, destroy: clearCounter },
    events: { show: openEvents },
    explanations: { create: createExplanation },
    fleet: { show: showFleet },
    health: { show: ({ operator }) => operator.health },
    history: { show: showHistory },
    instance: { show: showInstance },
    openapi: { show: showOpenapi },
    settings: { show: showSettings },
    statistics: { show: async (request) => request.stream(statisticsText(await request.operator.statistics())) },
  },
};

/** Declares the resources. */
export function declareResources(it: Api): void {
  for (const kind of ['resources', 'resource'] as const) {
    for (const [name, answers] of Object.entries(ANSWERS[kind])) {
      it[kind](name, { only: Object.keys(answers) as Action[] });
    }
  }
}

/** The controller of a resource, as route versioning needs one: a class with a method for each action. */
export function controllerOf(name: string): ControllerClass {
  class Controller {
    constructor(readonly ctx: Context) {}
  }
  const answers = ANSWERS.resources[name] ?? ANSWERS.resource[name] ?? {};
  for (const [action, answer] of Object.entries(answers)) {
    function act(this: Controller): unknown {
      return answer(new OperatorsRequest(this.ctx));
    }
    Object.defineProperty(Controller.prototype, action, { value: act });
  }
  return Controller;
}

/** A number of things; undefined if it is not given. */
function upTo999(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,2}$/.test(text)) throw invalidRequest(`${name} must be a number from 1 to 999`);
  return Number(text);
}

type CounterMembers = Partial<Omit<CounterBody, 'count'>>;

function queryOf({ domain, descriptor, window }: CounterMembers): CounterQuery {
  if (domain === undefined) throw missing('domain');
  if (descriptor === undefined) throw missing('descriptor');
  return { domain, descriptor: typeof descriptor === 'string' ? readDescriptor(descriptor) : descriptor, window };
}

function missing(name: string): HttpError {
  return invalidRequest(`the parameter ${name} is missing`);
}

/**
 * A descriptor as `key=value,key2=value2`, or in JSON as in a request, which allows commas in values, and a limit.
 *
 * @throws HttpError or MalformedBody
 */
function readDescriptor(text: string): Descriptor {
  if (text.startsWith('{')) return readDescriptorText(text);
  const entries = text.split(',').map((pair) => {
    const equals = pair.indexOf('=');
    if (equals > 0) return { key: pair.slice(0, equals), value: pair.slice(equals + 1) };
    const given = JSON.stringify(pair.slice(0, 40));
    throw invalidRequest(`the descriptor must be key=value,key2=value2, or JSON, but has ${given}`);
  });
  return { entries, limit: undefined, hitsAddend: NO_HITS_ADDEND, isNegativeHits: false };
}

function found<T extends object>(result: T | NoCounter): T {
  if (!('reason' in result)) return result;
  const { reason, nearest, windows } = result;
  const message = `the descriptor has no counter: ${reason}`;
  throw new HttpError({
    status: 404,
    code: 'no_counter',
    message,
    members: { nearest, ...(windows !== undefined && { windows }) },
  });
}
