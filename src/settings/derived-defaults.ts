import type { DerivedField, Field, Settings, SettingsView } from './settings';
import { isSocketPath } from './values/addresses';

type View = SettingsView<Exclude<Field, DerivedField>>;

function socketTypeOf(url = '') {
  return isSocketPath(url) ? 'unix' : 'tcp';
}

/** The defaults that follow from other settings. Each is described in its row of the table. */
export const derivedDefaults: { readonly [F in DerivedField]: (view: View) => Settings[F] } = {
  backendType({ isGiven }) {
    if (isGiven('kvstoreUrl')) return 'kvstore';
    return isGiven('plaincacheHostPort') || isGiven('plaincacheSrv') ? 'plaincache' : 'memory';
  },
  kvstoreSocketType: ({ settings }) => socketTypeOf(settings.kvstoreUrl),
  kvstorePersecondSocketType: ({ settings }) => socketTypeOf(settings.kvstorePersecondUrl),
  usePushstats: ({ settings }) => !settings.useTaggedstats && !settings.usePullmetrics,
};
