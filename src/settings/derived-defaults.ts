import type { DerivedField, Field, Settings, SettingsView } from './settings';
import { isSocketPath } from './values/addresses';

type View = SettingsView<Exclude<Field, DerivedField>>;

/** The defaults that follow from other settings; what each says in words stands in its row. */
export const derivedDefaults: { readonly [F in DerivedField]: (view: View) => Settings[F] } = {
  backendType({ isGiven }) {
    if (isGiven('kvstoreUrl')) return 'kvstore';
    return isGiven('plaincacheHostPort') || isGiven('plaincacheSrv') ? 'plaincache' : 'memory';
  },
  kvstoreSocketType: ({ settings }) => (isSocketPath(settings.kvstoreUrl ?? '') ? 'unix' : 'tcp'),
  kvstorePersecondSocketType: ({ settings }) => (isSocketPath(settings.kvstorePersecondUrl ?? '') ? 'unix' : 'tcp'),
  usePushstats: ({ settings }) => !settings.useTaggedstats && !settings.usePullmetrics,
};
