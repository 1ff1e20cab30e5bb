import type { ControllerClass } from '#versioning';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { Explanation } from '../../explain/explanation';
import { type Descriptor, NO_HITS_ADDEND } from '../../limiter/request';
import type { Log } from '../../log/log';
import type { CounterChange, CounterQuery, CounterState, NoCounter } from '../../operators/answers';
import type { Fleet, InstanceReport } from '../../operators/live-answers';
import type { Operator } from '../../operators/operator';
import { MOST_WATCHES } from '../../operators/watches';
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

/** What the controllers of the API work with. */
export interface OperatorsState extends OperatorsApiOptions {
  /** For the bodies of all requests. */
  readonly memory: BodyMemory;
  readonly explanations: Explanations;
  readonly streams: EventStreams;
}

class OperatorsController {
  protected readonly ctx: Context;
  protected readonly state: OperatorsState;
  protected readonly operator: Operator;

  constructor(ctx: Context) {
    this.ctx = ctx;
    this.state = ctx.state;
    this.operator = this.state.operator;
  }

  /** @returns the name of the token; @throws without one that permits it, if one is needed */
  protected authorize(access: Access): string | undefined {
    return this.state.authorization.check(this.ctx, access);
  }

  protected readJson(): Promise<string> {
    return receiveText(this.ctx, this.state.memory);
  }

  /** Answers with a line of JSON that is written while it is generated, at the pace of the caller. */
  protected stream(json: Iterable<string>): void {
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

class ChangesController extends OperatorsController {
  async index(): Promise<object> {
    this.authorize('report');
    const { top } = parametersOf(this.ctx, ['top']);
    if (top !== undefined && !/^[1-9]\d{0,2}$/.test(top)) throw invalidRequest('top must be a number from 1 to 999');
    return { changes: await this.operator.changes(top === undefined ? undefined : Number(top)) };
  }
}

class ConfigurationsController extends OperatorsController {
  index(): void {
    parametersOf(this.ctx, []);
    const configurations = Object.entries(this.operator.configurations).map(([name, configuration]) => {
      return [name, configuration && { ...configuration, files: configuration.files && textsOf(configuration.files) }];
    });
    this.stream(jsonText(Object.fromEntries(configurations), 4));
  }
}

const COUNTER_PARAMETERS = ['domain', 'descriptor', 'window'] as const;

class CountersController extends OperatorsController {
  async show(): Promise<CounterState> {
    this.authorize('private');
    return found(await this.operator.decisions.readCounter(queryOf(parametersOf(this.ctx, COUNTER_PARAMETERS))));
  }

  async update(): Promise<CounterChange> {
    const name = this.authorize('write');
    parametersOf(this.ctx, []);
    const { count, ...members } = readCounter(await this.readJson());
    if (count === undefined) throw missing('count');
    return this.#change(members, count, name);
  }

  async destroy(): Promise<CounterChange> {
    const name = this.authorize('write');
    return this.#change(parametersOf(this.ctx, [...COUNTER_PARAMETERS, 'reason']), null, name);
  }

  async #change({ reason, ...members }: CounterMembers, count: number | null, name = ''): Promise<CounterChange> {
    if (reason !== undefined && reason.length > LONGEST_TEXT) {
      throw invalidRequest(`the reason has more than ${LONGEST_TEXT} characters`);
    }
    const query = queryOf(members);
    const change = found(await this.operator.decisions.changeCounter(query, count));
    const { entries } = query.descriptor;
    const [domain, descriptor] = [query.domain, entries.map(({ key, value }) => `${key}=${value}`).join(',')].map(
      (text) => ownText(excerpt(text, LONGEST_TEXT)),
    ) as [string, string];
    const { countBefore: before, count: after } = change;
    const window = change.windows.length > 1 ? change.window : null;
    const from = ipAddress(this.ctx.req.socket) ?? '';
    const what = count === null ? 'counter cleared' : 'counter set';
    const [of, counts] = [
      { domain, descriptor },
      { before, after },
    ];
    const kept = reason === undefined ? null : ownText(reason);
    this.operator.addChange({ ...of, ...counts, ...{ name, from, what, window, reason: kept } });
    this.state.log.notice(`${what} by an operator`, {
      ...{ ...of, ...(window !== null && { window }), ...counts, peer: from, operator: name },
      ...(reason !== undefined && { reason }),
    });
    return change;
  }
}

/** Another instance says that it ends. */
class DeparturesController extends OperatorsController {
  async update(): Promise<object> {
    this.authorize('report');
    const { id } = this.ctx.params as { readonly id: string };
    await this.operator.taking(id);
    return { id };
  }
}

class EventsController extends OperatorsController {
  show(): void {
    parametersOf(this.ctx, []);
    const { authorization, streams } = this.state;
    const seesCallers = authorization.seesCallers(this.ctx);
    const role = authorization.roleOf(this.ctx);
    if (role !== undefined) this.ctx.set('Weir-Operator-Role', role);
    streams.open(this.ctx, () => seesCallers && authorization.seesCallers(this.ctx));
  }
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

class ExplanationsController extends OperatorsController {
  async create(): Promise<Explanation> {
    this.authorize('private');
    // The type of the body is not examined, as nothing is changed.
    const { limit, ...request } = readExplained(await this.readJson());
    return this.state.explanations.run(() => this.operator.decisions.explain(request, limit));
  }
}

class FleetController extends OperatorsController {
  async show(): Promise<void> {
    parametersOf(this.ctx, []);
    const seesAll = this.state.authorization.seesCallers(this.ctx);
    const fleet = await this.operator.fleet();
    if (seesAll) return this.#answer(fleet);
    const differences = fleet.differences.map((difference) => {
      if (difference.aspect !== 'settings') return difference;
      const values = difference.values.map(({ instances }) => ({ value: null, instances }));
      return { ...difference, isHidden: true, values };
    });
    return this.#answer({ ...fleet, differences, offenders: null });
  }

  /** The long lists come last. */
  #answer({ instances, differences, ...rest }: Fleet): void {
    this.stream(jsonText({ ...rest, instances, differences }, 2));
  }
}

class HealthController extends OperatorsController {
  show(): object {
    return this.operator.health;
  }
}

class HistoryController extends OperatorsController {
  async show(): Promise<void> {
    const { instance, ...numbers } = parametersOf(this.ctx, ['since', 'instance', 'most']);
    const { since, most } = numbers;
    if (since !== undefined && !/^\d{1,12}$/.test(since)) throw invalidRequest('since must be a time in Unix seconds');
    if (most !== undefined && !/^[1-9]\d{0,2}$/.test(most)) throw invalidRequest('most must be a number from 1 to 999');
    const history = await this.operator.history({
      ...{ instance, since: since === undefined ? undefined : Number(since) },
      most: most === undefined ? undefined : Number(most),
    });
    if (history !== undefined) return this.stream(jsonText(history, 2));
    throw new HttpError({ status: 404, code: 'not_found', message: 'there is no history of this instance' });
  }
}

class InstanceController extends OperatorsController {
  show(): Promise<InstanceReport> {
    this.authorize('report');
    return this.operator.report();
  }
}

class LoadsController extends OperatorsController {
  index(): object {
    parametersOf(this.ctx, []);
    return { loads: this.operator.loads };
  }
}

const DEFAULT_TOP = 20;
const MAX_TOP = 1_000;

class OffendersController extends OperatorsController {
  async index(): Promise<object> {
    this.authorize('private');
    const { domain, top = String(DEFAULT_TOP) } = parametersOf(this.ctx, ['domain', 'top']);
    const limit = /^[1-9]\d{0,3}$/.test(top) ? Number(top) : Infinity;
    if (limit > MAX_TOP) throw invalidRequest(`top must be a whole number from 1 to ${MAX_TOP}`);
    return { offenders: await this.operator.offenders({ domain, limit }) };
  }
}

/** The description of the API. The compiled file and this one are equally deep below it. */
const OPENAPI = readFileSync(join(__dirname, '../../../schema/operators-api.json'));

class OpenapiController extends OperatorsController {
  show(): void {
    this.ctx.set('Content-Type', 'application/openapi+json; version=3.1');
    this.ctx.body = OPENAPI;
  }
}

class RulesController extends OperatorsController {
  index(): Promise<void> {
    return this.#answer(undefined);
  }

  show(): Promise<void> {
    return this.#answer(this.ctx.params.id);
  }

  async #answer(domain: string | undefined): Promise<void> {
    const listing = await this.operator.rules(domain);
    if ('knownDomains' in listing) {
      const known = excerpt(listing.knownDomains.join(', '), LONGEST_LIST);
      const message = `the active rules have no such domain; ${known === '' ? 'they have none' : `their domains are ${known}`}`;
      throw new HttpError({ status: 404, code: 'unknown_domain', message });
    }
    this.stream(rulesText(listing));
  }
}

class SettingsController extends OperatorsController {
  show(): object {
    this.authorize('private');
    return { settings: this.operator.settings };
  }
}

class StatisticsController extends OperatorsController {
  async show(): Promise<void> {
    this.stream(statisticsText(await this.operator.statistics()));
  }
}

/** How much of a descriptor is watched, in characters. */
const LONGEST_WATCHED = 1_024;

class WatchesController extends OperatorsController {
  async index(): Promise<object> {
    this.authorize('report');
    const { own, ...members } = parametersOf(this.ctx, ['domain', 'descriptor', 'own']);
    if (own !== undefined && own !== 'true') throw invalidRequest('own must be true');
    const { domain, descriptor } = queryOf(members);
    const entries = descriptor.entries.map(({ key, value }) => ({ key, value }));
    if (entries.reduce((sum, { key, value }) => sum + key.length + value.length, domain.length) > LONGEST_WATCHED) {
      throw invalidRequest(`a descriptor that is watched has at most ${LONGEST_WATCHED} characters with its domain`);
    }
    const counts = await this.operator.watch({ domain, entries }, own === 'true');
    if (counts !== null) return counts;
    const message = `${MOST_WATCHES} callers are watched; each is until ten minutes after the last request for it`;
    throw new HttpError({ status: 429, code: 'too_many_watches', message, headers: { 'Retry-After': '60' } });
  }
}

/** The controllers by their names for route versioning. */
export const CONTROLLERS: Readonly<Record<string, ControllerClass>> = {
  'api/v1/changes': ChangesController,
  'api/v1/configurations': ConfigurationsController,
  'api/v1/counters': CountersController,
  'api/v1/departures': DeparturesController,
  'api/v1/events': EventsController,
  'api/v1/explanations': ExplanationsController,
  'api/v1/fleet': FleetController,
  'api/v1/health': HealthController,
  'api/v1/history': HistoryController,
  'api/v1/instance': InstanceController,
  'api/v1/loads': LoadsController,
  'api/v1/offenders': OffendersController,
  'api/v1/openapi': OpenapiController,
  'api/v1/rules': RulesController,
  'api/v1/settings': SettingsController,
  'api/v1/statistics': StatisticsController,
  'api/v1/watches': WatchesController,
};

/** The parameters of a query, each at most once. Rejects others. */
function parametersOf<const Name extends string>(
  ctx: Context,
  names: readonly Name[],
): Readonly<Partial<Record<Name, string>>> {
  for (const [name, value] of Object.entries(ctx.query)) {
    if (!(names as readonly string[]).includes(name)) {
      const unknown = JSON.stringify(name.slice(0, 40));
      throw invalidRequest(`there is no parameter ${unknown}; the parameters are ${names.join(', ')}`);
    }
    if (typeof value !== 'string') throw invalidRequest(`the parameter ${name} is repeated`);
  }
  return ctx.query as Readonly<Partial<Record<Name, string>>>;
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
