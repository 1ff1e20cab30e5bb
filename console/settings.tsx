import type { ListedSetting } from '../src/operators/answers';
import { useAnswer } from './api';
import { hasWords } from './callers';
import { Answered, Field } from './parts';
import { addressOf, replaceParameters, route } from './route';
import { useStore } from './store';
import { Text, count } from './text';

export function SettingsPage() {
  const { parameters } = useStore(route);
  const search = parameters.get('q') ?? '';
  const open = parameters.get('setting');
  return (
    <Answered
      answer={useAnswer<{ readonly settings: readonly ListedSetting[] }>('settings')}
      show={({ settings }) => {
        const found = settings.filter(({ name, value, documentation }) =>
          hasWords(`${name} ${value} ${documentation?.help} ${documentation?.allowed}`, search),
        );
        const [changed, others] = [
          found.filter((each) => each.source !== 'default'),
          found.filter((each) => each.source === 'default'),
        ];
        return (
          <>
            <Field
              label="Search by words of the name, the value or the text"
              type="search"
              value={search}
              onText={(q) => replaceParameters({ q })}
            />
            <h2>Set ({count(changed.length)})</h2>
            <List settings={changed} search={search} open={open} />
            <h2>As by default ({count(others.length)})</h2>
            <List settings={others} search={search} open={open} />
          </>
        );
      }}
    />
  );
}

interface ListProps {
  readonly settings: readonly ListedSetting[];
  readonly search: string;
  readonly open: string | null;
}

function List({ settings, search, open }: ListProps) {
  if (settings.length === 0) return <p class="hint">None.</p>;
  return (
    <dl class="facts settings">
      {settings.map((setting) => (
        <Setting key={setting.name} setting={setting} search={search} isOpen={setting.name === open} />
      ))}
    </dl>
  );
}

interface SettingProps {
  readonly setting: ListedSetting;
  readonly search: string;
  readonly isOpen: boolean;
}

function Setting({ setting: { name, source, value, documentation }, search, isOpen }: SettingProps) {
  return (
    <>
      <dt>
        <a href={addressOf('settings', { q: search, setting: isOpen ? '' : name })} aria-expanded={isOpen}>
          {name}
        </a>
      </dt>
      <dd>
        {value === null || value === '' ? <span class="hint">not set</span> : <Text text={value} />}
        {source === 'file' && <span class="hint"> (the file with the value)</span>}
        {isOpen && documentation !== null && (
          <div class="notice">
            {documentation.help.replaceAll('`', '')}
            <div class="hint">
              Values: {documentation.allowed}. Default: {documentation.default ?? 'none'}.
            </div>
          </div>
        )}
      </dd>
    </>
  );
}
