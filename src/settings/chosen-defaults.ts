import type { ChosenField, Field, Settings } from './settings';
import type { SettingsView } from './settings-view';
import { isSocketPath } from './values/store-address';

type View = SettingsView<Exclude<Field, ChosenField>>;

/** The defaults that follow from other settings; what each says in words stands in its row. */
export const chosenDefaults: { readonly [F in ChosenField]: (view: View) => Settings[F] } = {
  backendType({ isGiven }) {
    if (isGiven('kvstoreUrl')) return 'kvstore';
    return isGiven('plaincacheHostPort') || isGiven('plaincacheSrv') ? 'plaincache' : 'memory';
  },
  kvstoreSocketType: ({ settings }) => (isSocketPath(settings.kvstoreUrl ?? '') ? 'unix' : 'tcp'),
  kvstorePersecondSocketType: ({ settings }) => (isSocketPath(settings.kvstorePersecondUrl ?? '') ? 'unix' : 'tcp'),
  usePushstats: ({ settings }) => !settings.useTaggedstats && !settings.usePullmetrics,
};
