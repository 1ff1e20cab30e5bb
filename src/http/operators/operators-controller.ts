import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { Operator } from '../../streams/ports/operator';

/** What the controllers of the API work with. */
export interface OperatorsState {
  readonly operator: Operator;
}

/** The base of the controllers. */
export class OperatorsController {
  protected readonly ctx: Context;

  constructor(ctx: Context) {
    this.ctx = ctx;
  }

  protected get operator(): Operator {
    return (this.ctx.state as OperatorsState).operator;
  }

  /** Answers with JSON that is written while it is generated, at the pace of the caller. */
  protected stream(json: AsyncIterable<string>): void {
    this.ctx.type = 'application/json';
    this.ctx.body = Readable.from(json, { objectMode: false });
  }
}
