import { defer, from, switchMap } from 'rxjs';
import { type Server, nameOf } from '../../connections/address';
import type { Place } from '../deployment';
import { type StoreContext, openConnection } from '../store-context';
import { PooledStore } from '../pooled-store';
import type { Store } from '../store';
import { masterChanges } from './master-changes';
import { Sentinels } from './sentinels';

/** Counters on the master of the moment, which sentinels name. */
export function sentinelStore(place: Extract<Place, { kind: 'sentinel' }>, context: StoreContext): Store {
  const { tls, instance } = context;
  const sentinels = new Sentinels({
    masterName: place.masterName,
    sentinels: place.sentinels,
    credentials: place.sentinelCredentials,
    tls,
    timeout: instance.timeout,
  });
  function follow(master: Server): void {
    store.keepOnly(nameOf(master));
  }
  const store = new PooledStore(context, {
    name: place.masterName,
    connect: () =>
      defer(() => from(sentinels.master())).pipe(
        switchMap((master) => {
          follow(master);
          return openConnection(master, context, true);
        }),
      ),
    onReadonly: () => {
      // When nobody knows the master now, who finds one will say so.
      sentinels.master().then(follow, () => undefined);
    },
  });
  const changes = masterChanges(sentinels, place.sentinels).subscribe(follow);
  return {
    run: (batch) => store.run(batch),
    connected$: store.connected$,
    failures$: store.failures$,
    close: () => {
      changes.unsubscribe();
      store.close();
    },
  };
}
