import type { Application } from './application';
import type { HeaderBlockReader } from './header-blocks';
import type { Limits } from './limits';
import type { Refusal } from './refusals';

/** What the connections of a server share. */
export interface ServerContext<M, S> {
  readonly application: Application<M, S>;
  readonly limits: Limits;
  readonly headerBlocks: HeaderBlockReader<M>;
  /** Octets of requests that the application keeps, over all connections. */
  held: number;
  refused(kind: Refusal): void;
}
