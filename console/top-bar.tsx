import { useState } from 'preact/hooks';
import { token } from './api';
import { nameOf, scopeOf, useFleet } from './fleet-answer';
import { Icon } from './icons';
import { live } from './live-events';
import { Offered } from './parts';
import { PAGES, addressOf, replaceParameters, useParameter } from './route';
import { useStore } from './store';

/** Narrow windows show the first four pages, each with its picture, the others in a menu. */
const MAIN_PAGES = 4;
const LINKS = Object.entries(PAGES);

export function TopBar({ page, onToken }: { readonly page: string; readonly onToken: () => void }) {
  const tokenText = useStore(token) === '' ? 'Enter a token' : 'Forget the token';
  const [isOpen, setOpen] = useState(false);
  const isOther = LINKS.slice(MAIN_PAGES).some(([name]) => name === page);
  // Anything else in the menu closes it.
  function toggle({ target }: Event): void {
    setOpen(!isOpen && (target as Element).closest('.more') !== null);
  }
  function skip(event: Event): void {
    event.preventDefault();
    document.querySelector('main')!.focus();
  }
  return (
    <header class="top">
      <a class="skip" href={addressOf(page)} onClick={skip}>
        Skip to the page
      </a>
      <a class="brand" href={addressOf('live')}>
        <svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
          <path class="stroke" d="M2 6c2.5-2.5 5 2.5 8 0s5.5 2.5 8 0M5 11v6M10 11v6M15 11v6" />
        </svg>
        weir
      </a>
      <nav aria-label="Pages" class={isOpen ? 'open' : ''} onClick={toggle}>
        {LINKS.map(([name, [title, , icon]], index) => (
          <a
            key={name}
            class={index < MAIN_PAGES ? '' : 'other'}
            href={addressOf(name)}
            aria-current={name === page ? 'page' : undefined}
          >
            <Icon name={icon} />
            {title}
          </a>
        ))}
        <button class={`more ${isOther ? 'here' : ''}`} aria-expanded={isOpen}>
          <Icon name="more" />
          More
        </button>
        <button class="other narrow" onClick={onToken}>
          <Icon name="key" />
          {tokenText}
        </button>
      </nav>
      <Find />
      <ScopeChoice />
      <button class="bare wide" aria-label="Dark or light" title="Dark or light" onClick={changeScheme}>
        <Icon name="theme" />
      </button>
      <button class="bare wide" aria-label={tokenText} onClick={onToken}>
        <Icon name="key" />
        <span class="label">{tokenText}</span>
      </button>
    </header>
  );
}

/** Until the page is loaded again; else as the system has it. */
function changeScheme(): void {
  const { dataset } = document.documentElement;
  const isDark = (dataset['theme'] ?? (matchMedia('(prefers-color-scheme: dark)').matches && 'dark')) === 'dark';
  dataset['theme'] = isDark ? 'light' : 'dark';
}

/** Finds callers by their descriptors, and rules by their names. */
function Find() {
  const [text, setText] = useState('');
  const { event } = useStore(live);
  const callers = event?.offenders ?? [];
  const rules = [...(event?.rules.hits ?? []), ...(event?.rules.denials ?? [])].map((rule) => rule.statisticsKey);
  function submit(submitted: Event): void {
    submitted.preventDefault();
    const caller = callers.find(({ descriptor }) => descriptor === text);
    if (caller !== undefined) location.hash = addressOf('callers', { domain: caller.domain, descriptor: text });
    else if (rules.includes(text)) location.hash = addressOf('rules', { rule: text });
    else location.hash = addressOf(text.includes('=') ? 'callers' : 'rules', { q: text });
    setText('');
  }
  return (
    <form class="find" role="search" onSubmit={submit}>
      <Icon name="find" />
      <input
        id="find"
        type="search"
        aria-label="Find a caller or a rule"
        placeholder="Caller or rule"
        list="found"
        value={text}
        onInput={(input) => setText(input.currentTarget.value)}
      />
      <kbd aria-hidden="true">/</kbd>
      <Offered id="found" values={[...new Set([...callers.map(({ descriptor }) => descriptor), ...rules])]} />
    </form>
  );
}

/** Which instances are shown: all of them, as one, unless one is chosen. */
function ScopeChoice() {
  const fleet = useFleet();
  const chosen = useParameter('scope');
  if (fleet === undefined) return <></>;
  return (
    <select
      class="scope"
      aria-label="Instances shown"
      value={chosen}
      onInput={(event) => replaceParameters({ scope: event.currentTarget.value })}
    >
      <option value="">All {fleet.instances.length} instances</option>
      {fleet.instances.map((instance) => (
        <option key={scopeOf(instance)} value={scopeOf(instance)}>
          {nameOf(instance).join(', ')}
        </option>
      ))}
    </select>
  );
}
