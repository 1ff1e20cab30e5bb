import { type FunctionComponent, render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { token } from './api';
import { CallersPage } from './callers';
import { CountersPage } from './counters';
import { ExplainPage } from './explain';
import { FleetPage } from './fleet';
import { HealthBar } from './health-bar';
import { HelpPage } from './help';
import { type Live, live, watch } from './live-events';
import { LivePage } from './live';
import { TokenForm } from './parts';
import { addressOf, followRoute, route } from './route';
import { RulesPage } from './rules';
import { SettingsPage } from './settings';
import { useStore } from './store';

const PAGES: Readonly<Record<string, readonly [title: string, page: FunctionComponent]>> = {
  live: ['Live', LivePage],
  callers: ['Callers', CallersPage],
  rules: ['Rules', RulesPage],
  explain: ['Explain', ExplainPage],
  counters: ['Counters', CountersPage],
  fleet: ['Fleet', FleetPage],
  settings: ['Settings', SettingsPage],
};

/** Not in the navigation: links lead to it. */
const HELP = ['What to do', HelpPage] as const;

const STATES: Readonly<Record<Live['state'], string>> = {
  connecting: 'Connecting',
  live: 'Connected',
  lost: 'Connection lost',
  refused: 'Token refused',
  stopping: 'Stopping',
};

function Console() {
  const { page } = useStore(route);
  const { state, reason } = useStore(live);
  const hasToken = useStore(token) !== '';
  const [isAsking, setAsking] = useState(false);
  const [title, Page] = PAGES[page] ?? (page === 'help' ? HELP : ['Not found', NotFound]);
  useEffect(() => {
    document.title = `${title} · weir`;
  }, [title]);
  useEffect(() => setAsking(false), [hasToken]);
  return (
    <>
      <header>
        <a class="brand" href="../">
          weir
        </a>
        <nav aria-label="Pages">
          {Object.entries(PAGES).map(([name, [label]]) => (
            <a key={name} href={addressOf(name)} aria-current={name === page ? 'page' : undefined}>
              {label}
            </a>
          ))}
        </nav>
        <small class="connection" role="status" title={reason}>
          {STATES[state]}
        </small>
        <button type="button" onClick={() => (hasToken ? token.set('') : setAsking(!isAsking))}>
          {hasToken ? 'Forget the token' : 'Enter a token'}
        </button>
      </header>
      <HealthBar />
      <main>
        <h1>{title}</h1>
        {isAsking && <TokenForm why="The token permits changes, and to see what callers have sent." />}
        {state === 'refused' && <TokenForm why="The token is wrong." />}
        {(state === 'lost' || state === 'stopping') && (
          <p class="notice bad" role="alert">
            The numbers are old: {reason}. Connecting again…
          </p>
        )}
        <Page />
      </main>
    </>
  );
}

function NotFound() {
  return (
    <p>
      There is no such page. <a href={addressOf('live')}>Live</a> is the first one.
    </p>
  );
}

followRoute();
watch();
render(<Console />, document.body);
