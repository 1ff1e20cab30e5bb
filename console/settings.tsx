import { Fragment } from 'preact';
import type { ListedSetting } from '../src/operators/answers';
import { useAnswer } from './api';
import { hasWords } from './callers';
import { useFleet } from './fleet-answer';
import { PageBar } from './page-bar';
import { Card, Search, answered } from './parts';
import { addressOf, replaceParameters, useParameter } from './route';
import { count, shown } from './text';

export function SettingsPage() {
  const [search, open] = [useParameter('q'), useParameter('setting')];
  const whose = useFleet() === undefined ? 'of this instance' : 'of this instance only; Fleet shows what differs';
  const answer = useAnswer<{ readonly settings: readonly ListedSetting[] }>('settings');
  return (
    <>
      <PageBar title="Settings" text={whose} />
      {answered(answer, ({ settings }) => {
        const found = settings.filter(({ name, value, documentation }) =>
          hasWords(`${name} ${value} ${documentation?.help} ${documentation?.allowed}`, search),
        );
        const groups = {
          Set: found.filter(({ source }) => source !== 'default'),
          'As by default': found.filter(({ source }) => source === 'default'),
        };
        return (
          <div class="grid">
            <div class="card c12">
              <Search
                label="Search by words of the name, the value or the text"
                value={search}
                found={`${count(found.length)} of ${count(settings.length)} settings`}
                onText={(q) => replaceParameters({ q })}
              />
            </div>
            {Object.entries(groups).map(([title, group]) => (
              <Card key={title} title={`${title} (${count(group.length)})`} columns={12}>
                {group.length === 0 && <p class="empty">None.</p>}
                <dl class="facts settings">{group.map((setting) => factOf(setting, search, setting.name === open))}</dl>
              </Card>
            ))}
          </div>
        );
      })}
    </>
  );
}

function factOf({ name, source, value, documentation }: ListedSetting, search: string, isOpen: boolean) {
  return (
    <Fragment key={name}>
      <dt>
        <a href={addressOf('settings', { q: search, setting: isOpen ? '' : name })} aria-expanded={isOpen}>
          {shown(name)}
        </a>
      </dt>
      <dd>
        {value ? <span class="mono">{shown(value)}</span> : <span class="faint">not set</span>}
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
    </Fragment>
  );
}
