import type { Application } from './application';
import type { HeaderBlockReader } from '../headers/header-blocks';
import type { Limits } from '../limits/limits';
import type { Refusal } from '../limits/refusals';

/** What the connections of a server share. */
export interface ServerContext<M, S> {
  readonly application: Application<M, S>;
  readonly limits: Limits;
  readonly headerBlocks: HeaderBlockReader<M>;
  /** Bytes of requests that the application keeps, over all connections. */
  held: number;
  refused(kind: Refusal): void;
}
