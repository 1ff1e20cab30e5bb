import { Store, useStore } from './store';

/** The page and its parameters. They are in the fragment, so that a proxy need not know them. */
export interface Route {
  readonly page: string;
  readonly parameters: URLSearchParams;
}

export const route = new Store(read());

export function followRoute(): void {
  addEventListener('hashchange', () => {
    const { page } = route.value;
    route.set(read());
    // A new page begins at its top; where one that is gone back to begins is left to the browser.
    if (history.state === null && route.value.page !== page) scrollTo(0, 0);
    history.replaceState('shown', '');
  });
  history.replaceState('shown', '');
}

function read(): Route {
  const [page = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  return { page: page || 'live', parameters: new URLSearchParams(query) };
}

/** A parameter of the address; empty: there is none. */
export function useParameter(name: string): string {
  return useStore(route).parameters.get(name) ?? '';
}

/** The pages that are chosen on top: what they are called, the letter that opens each after a `g`, and an icon. */
export const PAGES = {
  live: ['Live', 'l', 'live'],
  callers: ['Callers', 'c', 'callers'],
  rules: ['Rules', 'r', 'rules'],
  fleet: ['Fleet', 'f', 'fleet'],
  explain: ['Explain', 'e', 'find'],
  activity: ['Activity', 'a', 'activity'],
  settings: ['Settings', 's', 'settings'],
} as const;

type Parameters = Readonly<Record<string, string | readonly string[] | undefined>>;

/** What stays when another page is opened: which instances and which time are shown. */
const KEPT = ['scope', 'range'];

/** The address of a page; parameters that are empty are left out. */
export function addressOf(page: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  const others = KEPT.filter((name) => !(name in parameters));
  const kept = others.map((name) => [name, route.value.parameters.get(name) ?? ''] as const);
  for (const [name, values] of [...Object.entries(parameters), ...kept]) {
    for (const value of [values ?? []].flat()) if (value !== '') query.append(name, value);
  }
  return `#/${page}${query.size === 0 ? '' : `?${String(query)}`}`;
}

/** Changes parameters of the present page without a step in the history, for what is being typed. */
export function replaceParameters(changed: Parameters): void {
  const { page, parameters } = route.value;
  const present = Object.fromEntries([...parameters.keys()].map((name) => [name, parameters.getAll(name)]));
  history.replaceState('shown', '', addressOf(page, { ...present, ...changed }));
  route.set(read());
}
