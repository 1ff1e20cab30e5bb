import type { LoadedSettings } from './read-settings';
import type { Settings } from './settings';

/** What a counter store can do: known by BACKEND_TYPE, before it is opened. A text is the reason why it cannot. */
export interface StoreAbilities {
  /** Decides limits with an algorithm, and those of a rule with all_or_nothing, in one step. */
  readonly algorithms: true | string;
  /** Takes hits up to a limit in one step, before they are asked for. */
  readonly leases: true | string;
  /** Changes the record of a reservation and its counters in one step. */
  readonly reservations: true | string;
  /** Whether its counters are outside of this instance: each process opens it, and policies answer while it is away. */
  readonly isShared: boolean;
  /** Whether calls wait for it as long as KVSTORE_TIMEOUT, unless policies answer them before. */
  readonly hasTimeout: boolean;
  /** Whether counters of a server that does not answer count as 0, unless STORE_FAILURE_POLICY is set. */
  readonly countsAsZero: boolean;
}

const COMPLETE = { algorithms: true, leases: true, reservations: true } as const;

const STORES: Readonly<Record<Settings['backendType'], StoreAbilities>> = {
  memory: { ...COMPLETE, isShared: false, hasTimeout: false, countsAsZero: false },
  kvstore: { ...COMPLETE, isShared: true, hasTimeout: true, countsAsZero: false },
  plaincache: {
    algorithms: 'memcached has no scripts, without which a decision is not atomic',
    leases: 'memcached has no scripts, without which hits cannot be taken up to a limit',
    reservations: 'memcached cannot change the record of a reservation and its counters in one step',
    ...{ isShared: true, hasTimeout: false, countsAsZero: true },
  },
};

/** The settings that say which store is used. */
export type StoreSettings = Pick<Settings, 'backendType'>;

/** What the store of the settings can do. */
export function storeAbilities({ backendType }: StoreSettings): StoreAbilities {
  return STORES[backendType];
}

/** What the store of these variables can do, whether or not it has an address: rules are checked without one, too. */
export function abilitiesAtCheck({ BACKEND_TYPE: name = '' }: NodeJS.ProcessEnv): StoreAbilities {
  return /^(?:plaincache|memcache)$/i.test(name) ? STORES.plaincache : STORES.kvstore;
}

/** Whether policies answer for a store that fails; otherwise, its counters cannot fail, or count as 0 then. */
export function hasPolicies({ settings, given }: Pick<LoadedSettings, 'settings' | 'given'>): boolean {
  const { isShared, countsAsZero } = storeAbilities(settings);
  return isShared && (!countsAsZero || given.has('storeFailurePolicy'));
}
