import { type FunctionComponent, render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ActivityPage } from './activity';
import { token } from './api';
import { CallersPage } from './callers';
import { Hatch } from './plot';
import { ExplainPage } from './explain';
import { FleetPage } from './fleet';
import { HelpPage } from './help';
import { KeysDialog, useKeys } from './keys';
import { live, watch } from './live-events';
import { LivePage } from './live';
import { PageBar } from './page-bar';
import { Notice, TokenForm } from './parts';
import { PAGES, addressOf, followRoute, route } from './route';
import { RulesPage } from './rules';
import { SettingsPage } from './settings';
import { StatusBar } from './status';
import { useStore } from './store';
import { Link } from './text';
import { TopBar } from './top-bar';

const COMPONENTS: Readonly<Record<string, FunctionComponent>> = {
  ...{ live: LivePage, callers: CallersPage, rules: RulesPage, fleet: FleetPage, explain: ExplainPage },
  ...{ activity: ActivityPage, settings: SettingsPage, help: HelpPage },
};
/** Links lead to `help`. */
const TITLES: Readonly<Record<string, readonly [title: string, ...unknown[]]>> = { ...PAGES, help: ['What to do'] };

/** Exported, as a module without exports is bundled as a script of Node.js. */
export function Console() {
  const { page } = useStore(route);
  const { state, reason } = useStore(live);
  const hasToken = useStore(token) !== '';
  const [isAsking, setAsking] = useState(false);
  const [hasKeys, setKeys] = useState(false);
  const [title] = TITLES[page] ?? ['Not found'];
  const Page = COMPONENTS[page] ?? NotFound;
  useEffect(() => {
    document.title = `${title} · weir`;
  }, [title]);
  useEffect(() => setAsking(false), [hasToken]);
  useKeys(() => setKeys(true));
  const isOld = state === 'lost' || state === 'stopping';
  return (
    <>
      <TopBar page={page} onToken={() => (hasToken ? token.set('') : setAsking(!isAsking))} />
      <StatusBar />
      <main tabIndex={-1} class={isOld ? 'old' : ''}>
        {isAsking && <TokenForm isAsked why="The token permits changes, and to see what callers have sent." />}
        {state === 'refused' && <TokenForm isAsked why="The token is wrong." />}
        {isOld && (
          <Notice tone="none" title={`The numbers are old: ${reason}.`}>
            Connecting again…
          </Notice>
        )}
        <Page />
      </main>
      {hasKeys && <KeysDialog onClose={() => setKeys(false)} />}
      <Hatch />
    </>
  );
}

function NotFound() {
  const first = <Link key="live" href={addressOf('live')} text="Live" />;
  return <PageBar title="Not found" text={['There is no such page. ', first, ' is the first one.']} />;
}

followRoute();
watch();
render(<Console />, document.body);
