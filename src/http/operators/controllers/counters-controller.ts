import type { CounterChange, CounterQuery, CounterState, NoCounter } from '../../../streams/ports/operator';
import { excerpt } from '../../../text/excerpt';
import { HttpError } from '../../server/errors';
import { ProblemError } from '../problems';
import { invalid, parametersOf, readDescriptor } from '../query';
import { OperatorsController } from '../operators-controller';
import { requireJson } from '../read-json';

/** How much of a caller's text is logged, in characters. */
const LONGEST_TEXT = 256;

/** `/api/counters` */
export class CountersController extends OperatorsController {
  async show(): Promise<CounterState> {
    this.authorize('private');
    return found(await this.operator.readCounter(this.#queryOf(parametersOf(this.ctx, ['domain', 'descriptor']))));
  }

  async update(): Promise<CounterChange> {
    this.authorize('write');
    requireJson(this.ctx);
    parametersOf(this.ctx, []);
    const { count, ...members } = bodyOf(await this.readJson());
    return this.#change(this.#queryOf(members), count);
  }

  async destroy(): Promise<CounterChange> {
    this.authorize('write');
    return this.#change(this.#queryOf(parametersOf(this.ctx, ['domain', 'descriptor'])), null);
  }

  #queryOf({ domain, descriptor }: { readonly domain?: string; readonly descriptor?: string }): CounterQuery {
    if (domain === undefined) throw invalid('the parameter domain is missing');
    if (descriptor === undefined) throw invalid('the parameter descriptor is missing');
    return { domain, descriptor: readDescriptor(descriptor) };
  }

  async #change(query: CounterQuery, count: number | null): Promise<CounterChange> {
    const change = found(await this.operator.changeCounter(query, count));
    this.log.notice(count === null ? 'counter cleared by an operator' : 'counter set by an operator', {
      domain: excerpt(query.domain, LONGEST_TEXT),
      descriptor: excerpt(query.descriptor.entries.map(({ key, value }) => `${key}=${value}`).join(','), LONGEST_TEXT),
      before: change.countBefore,
      after: count ?? 0,
      peer: this.ctx.req.socket.remoteAddress,
    });
    return change;
  }
}

function found<T extends object>(result: T | NoCounter): T {
  if (!('reason' in result)) return result;
  const { reason, nearest } = result;
  const response = { status: 404, code: 'no_counter', message: `the descriptor has no counter: ${reason}` };
  throw new ProblemError(response, { nearest });
}

interface CounterBody {
  readonly domain: string;
  readonly descriptor: string;
  readonly count: number;
}

const MEMBERS: readonly string[] = ['domain', 'descriptor', 'count'] satisfies (keyof CounterBody)[];

/** @throws HttpError for anything but `{domain, descriptor, count}` */
function bodyOf(text: string): CounterBody {
  const body = parsed(text);
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw invalid('the body must be a JSON object');
  const unknown = Object.keys(body).find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) {
    throw invalid(`the body has the member ${JSON.stringify(unknown.slice(0, 40))}; allowed: ${MEMBERS.join(', ')}`);
  }
  const { domain, descriptor, count } = body as Readonly<Record<keyof CounterBody, unknown>>;
  if (typeof domain !== 'string') throw invalid('domain must be a string');
  if (typeof descriptor !== 'string' && (typeof descriptor !== 'object' || descriptor === null)) {
    throw invalid('descriptor must be a string key=value,key2=value2 or an object');
  }
  if (!Number.isSafeInteger(count) || Number(count) < 0) {
    throw invalid('count must be a whole number from 0 to 9007199254740991; DELETE clears the counter');
  }
  const written = typeof descriptor === 'string' ? descriptor : JSON.stringify(descriptor);
  return { domain, descriptor: written, count: Number(count) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new HttpError({ status: 400, code: 'invalid_request', message: 'the body is not valid JSON' }, { cause });
  }
}
