import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { BodyMemory } from '../json/body-memory';
import type { Access, Authorization } from './authorization';
import { readJson } from './read-json';
import type { Log } from '../../streams/ports/log';
import type { Operator } from '../../streams/ports/operator';

/** What the controllers of the API work with. */
export interface OperatorsState {
  readonly operator: Operator;
  readonly authorization: Authorization;
  /** Of the bodies of all requests. */
  readonly memory: BodyMemory;
  readonly log: Log;
}

/** The base of the controllers. */
export class OperatorsController {
  protected readonly ctx: Context;

  constructor(ctx: Context) {
    this.ctx = ctx;
  }

  protected get operator(): Operator {
    return this.#state.operator;
  }

  protected get log(): Log {
    return this.#state.log;
  }

  /** @throws without the token, if it is needed */
  protected authorize(access: Access): void {
    this.#state.authorization.check(this.ctx, access);
  }

  protected readJson(): Promise<string> {
    return readJson(this.ctx, this.#state.memory);
  }

  /** Answers with JSON that is written while it is generated, at the pace of the caller. */
  protected stream(json: AsyncIterable<string>): void {
    this.ctx.type = 'application/json';
    this.ctx.body = Readable.from(json, { objectMode: false });
  }

  get #state(): OperatorsState {
    return this.ctx.state;
  }
}
