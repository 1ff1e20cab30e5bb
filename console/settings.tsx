import type { ListedSetting } from '../src/operators/answers';
import { useAnswer } from './api';
import { hasWords } from './callers';
import { useFleet } from './fleet-answer';
import { PageBar } from './page-bar';
import { Answered, Card, Field } from './parts';
import { addressOf, replaceParameters, route } from './route';
import { useStore } from './store';
import { Text, count } from './text';

export function SettingsPage() {
  const { parameters } = useStore(route);
  const search = parameters.get('q') ?? '';
  const open = parameters.get('setting');
  const fleet = useFleet();
  return (
    <>
      <PageBar
        title="Settings"
        text={fleet === undefined ? 'of this instance' : 'of this instance only; Fleet shows what differs'}
      />
      <Answered
        answer={useAnswer<{ readonly settings: readonly ListedSetting[] }>('settings')}
        show={({ settings }) => {
          const found = settings.filter(({ name, value, documentation }) =>
            hasWords(`${name} ${value} ${documentation?.help} ${documentation?.allowed}`, search),
          );
          const changed = found.filter((each) => each.source !== 'default');
          const others = found.filter((each) => each.source === 'default');
          return (
            <div class="grid">
              <div class="card c12 head tools">
                <Field
                  label="Search by words of the name, the value or the text"
                  type="search"
                  value={search}
                  onText={(q) => replaceParameters({ q })}
                />
              </div>
              <Card title={`Set (${count(changed.length)})`} columns={12}>
                <List settings={changed} search={search} open={open} />
              </Card>
              <Card title={`As by default (${count(others.length)})`} columns={12}>
                <List settings={others} search={search} open={open} />
              </Card>
            </div>
          );
        }}
      />
    </>
  );
}

interface ListProps {
  readonly settings: readonly ListedSetting[];
  readonly search: string;
  readonly open: string | null;
}

function List({ settings, search, open }: ListProps) {
  if (settings.length === 0) return <p class="empty">None.</p>;
  return (
    <dl class="facts settings pad">
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
          <Text text={name} />
        </a>
      </dt>
      <dd>
        {value === null || value === '' ? (
          <span class="faint">not set</span>
        ) : (
          <span class="mono">
            <Text text={value} />
          </span>
        )}
        {source === 'file' && <span class="quiet"> (the file with the value)</span>}
        {isOpen && documentation !== null && (
          <div class="about">
            {documentation.help.replaceAll('`', '')}
            <div class="quiet">
              Values: {documentation.allowed}. Default: {documentation.default ?? 'none'}.
            </div>
          </div>
        )}
      </dd>
    </>
  );
}
