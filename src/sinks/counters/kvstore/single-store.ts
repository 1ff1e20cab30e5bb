import { type Server, nameOf } from './address';
import { openConnection } from './open-connection';
import { PooledStore } from './pooled-store';
import type { Store } from './store';
import type { StoreContext } from './store-context';

/** Counters on one server. */
export function singleStore(server: Server, context: StoreContext): Store {
  return new PooledStore(context, {
    name: nameOf(server),
    connect: () => openConnection(server, context),
    // The operator named this server and no other.
    onReadonly: () => undefined,
  });
}
